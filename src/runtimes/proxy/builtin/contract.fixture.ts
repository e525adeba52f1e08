import { expect } from 'vitest';
import { askProxy } from '#runtimes/proxy/builtin/control-client.ts';
import { createRouter, stopProxy } from '#runtimes/proxy/builtin/index.ts';
import type { StartProxy } from '#runtimes/proxy/contract/subject.ts';
import { readShimLog } from '#runtimes/tools/shim/index.ts';

/** Starts the built-in proxy for the suites of all proxies. */
export const startBuiltin: StartProxy = async ({ directory, release, ...options }) => ({
  router: await createRouter({
    directory,
    host: '127.0.0.1',
    port: 0,
    revision: release,
    log: () => undefined,
    ...options,
  }),
  pid: async () => {
    const answer = await askProxy(directory, { do: 'status' }, 2000);
    return answer.ok ? answer.status!.pid : expect.fail(answer.message);
  },
  faults: async () =>
    (await readShimLog(`${directory}/shim`, 1000)).filter(({ stream }) => stream === 'stderr').map(({ text }) => text),
  stop: () => stopProxy(directory),
});
