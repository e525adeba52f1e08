import { unsupportedCertificates, type Router } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Router where no proxy is started: of commands that only inspect the machine, and of a process without a machine of its own. */
export const NO_ROUTER: Router = {
  port: 0,
  set: () =>
    Promise.reject(
      new RuntimeError(
        'refused',
        'No reverse proxy runs here: the machine is only looked at, or its data are temporary.',
      ),
    ),
  drained: () => Promise.resolve(),
  remove: () => Promise.resolve(),
  certificates: (hosts) => Promise.resolve(unsupportedCertificates(hosts)),
  requests: () => Promise.resolve(null),
};
