import { unsupportedCertificates, type Router } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Router of commands that only inspect the machine: they start no proxy. */
export const NO_ROUTER: Router = {
  port: 0,
  set: () => Promise.reject(new RuntimeError('refused', 'There are no routes while the machine is only looked at.')),
  drained: () => Promise.resolve(),
  remove: () => Promise.resolve(),
  certificates: (hosts) => Promise.resolve(unsupportedCertificates(hosts)),
};
