import { keepRunning, type KeptLog } from '#kernel/keep-running.ts';
import {
  createRouter as createBuiltinRouter,
  stopProxy as stopBuiltinProxy,
  type RouterOptions as BuiltinOptions,
} from '#runtimes/proxy/builtin/index.ts';
import type { HttpsOptions } from '#runtimes/proxy/caddy/config.ts';
import { createCaddyRouter, stopCaddyProxy } from '#runtimes/proxy/caddy/index.ts';
import { featuresOf, findCaddy, type CaddyProgram } from '#runtimes/proxy/caddy/program.ts';
import { losesWaiting } from '#runtimes/proxy/caddy/waiting.ts';
import { isProxyRunning } from '#runtimes/proxy/running.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { Router } from '#runtimes/router.ts';

/** Router whose proxy outlives this process; `close` only detaches from it. */
export type NodeRouter = Router & { close(): Promise<void> };

export interface RouterOptions extends BuiltinOptions {
  /** `builtin`, `caddy`, or the absolute path of Caddy; absent is `builtin`. */
  program?: string;
  /** HTTPS for hosts that ask for a certificate; only Caddy serves it. */
  https?: HttpsOptions;
  /** Log of the watch that starts the proxy again; without it there is no watch. */
  watchLog?: KeptLog;
}

const NO_HTTPS: HttpsOptions = { port: 0, directoryUrl: '', email: '', rootsFile: '' };

/** Finds Caddy for `RouterOptions.program`; null is the built-in proxy. Throws RuntimeError `failed` if Caddy cannot be used. */
export async function chooseProxy(program: string): Promise<CaddyProgram | null> {
  if (program === 'builtin') return null;
  const caddy = await findCaddy(program);
  if (caddy) return caddy;
  throw new RuntimeError('failed', 'Caddy is not installed: `apt-get install caddy`.');
}

/** Limits of Caddy on this machine, for operators, with the version or setting that lifts each. */
export function limitsOf(caddy: CaddyProgram): string[] {
  const streams = `Caddy ${caddy.version} closes all open WebSockets at each deployment: install 2.7 or later from https://caddyserver.com/docs/install.`;
  const waiting =
    'A deployment may reset connections that Caddy has not accepted yet: `sysctl -w net.ipv4.tcp_migrate_req=1` (Linux 5.14 or later) keeps them.';
  return [...(featuresOf(caddy).keepsStreams ? [] : [streams]), ...(losesWaiting() ? [waiting] : [])];
}

/**
 * Starts the reverse proxy of this node, or adopts the one that runs in the folder, with its routes. Until it is closed it starts the proxy
 * again whenever that ends together with its shim: of several processes one does, and the others adopt it.
 */
export async function createRouter(options: RouterOptions): Promise<NodeRouter> {
  const router = await startRouter(options);
  if (!options.watchLog) return router;
  const endWatch = keepRunning(
    {
      name: 'the reverse proxy',
      isRunning: () => isProxyRunning(options.directory, options.host, router.port),
      startAgain: async () => (await startRouter({ ...options, port: router.port })).close(),
    },
    options.watchLog,
  );
  const close = router.close.bind(router);
  router.close = async () => {
    await endWatch();
    await close();
  };
  return router;
}

async function startRouter(options: RouterOptions): Promise<NodeRouter> {
  const { program = 'builtin', https = NO_HTTPS, trustedProxies = [], ...common } = options;
  const caddy = await chooseProxy(program);
  if (!caddy) {
    await stopCaddyProxy(options.directory);
    return createBuiltinRouter({ ...common, trustedProxies });
  }
  // Both keep their routes in the same files, so that either can continue after the other.
  await stopBuiltinProxy(options.directory);
  return createCaddyRouter({ ...common, program: caddy, https, trustedProxies });
}

/** Stops the proxy of a folder, if there is one; its routes stay for the next. */
export async function stopProxy(directory: string): Promise<void> {
  await stopBuiltinProxy(directory);
  await stopCaddyProxy(directory);
}
