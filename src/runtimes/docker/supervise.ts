import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { startShim, stopShim } from '#runtimes/tools/shim/index.ts';
import type { EngineAddress } from './connect.ts';
import { LABEL } from './labels.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import { findContainers } from './search.ts';

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const PROGRAM = new URL(`./liveness-program.${EXTENSION}`, import.meta.url);

export interface Supervision {
  engine: Docker;
  address: EngineAddress;
  installation: string;
  dataDir: string;
}

/**
 * Returns a function that keeps the liveness watcher running exactly while a container has a probe. The watcher has a shim of its own and
 * so outlives the control plane (liveness.ts gives the reason).
 */
export function makeSupervise({ engine, address, installation, dataDir }: Supervision): () => Promise<void> {
  const lock = new KeyedLock();
  const key = createHash('sha256')
    .update(JSON.stringify([installation, address]))
    .digest('hex')
    .slice(0, 8);
  const directory = join(dataDir, `docker-liveness-${key}`);
  const compileCache = join(dataDir, 'docker-compiled');
  return () =>
    lock.run('', async () => {
      const containers = await findContainers({ engine, installation });
      if (containers.every((one) => one.Labels[LABEL.liveness] === undefined)) return stopShim(directory, 2000);
      await startShim({
        directory,
        command: process.execPath,
        args: ['--disable-warning=ExperimentalWarning', PROGRAM.pathname, installation, JSON.stringify(address)],
        env: { NODE_COMPILE_CACHE: compileCache },
        compileCache,
        programs: [PROGRAM],
      });
    });
}
