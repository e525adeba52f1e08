import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createHostRuntime } from '#runtimes/host/index.ts';
import { describeRuntimeContract, type ContractSetup } from '#runtimes/runtime.contract.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';

/** Everything that is there of a service: folders, volumes, and processes that name it. */
async function leftovers(directory: string, { serviceId }: WorkloadIdentity): Promise<string[]> {
  const folders = [join(directory, 'host', 'services', serviceId), join(directory, 'images', serviceId)];
  const volumes = join(directory, 'volumes');
  const owned = (existsSync(volumes) ? readdirSync(volumes) : []).filter((id) =>
    readFileSync(join(volumes, id, 'volume.json'), 'utf8').includes(serviceId),
  );
  const processes = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(serviceId));
  return [...folders.filter((folder) => existsSync(folder)), ...owned, ...processes];
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

const subject = (mode: 'auto' | 'plain') => async (setup: ContractSetup) => {
  // Without namespaces the workloads' accounts need a way to their folders; the one of the suite is closed to others.
  if (mode === 'plain') chmodSync(dirname(setup.directory), 0o711);
  const open = () =>
    createHostRuntime({
      dataDir: setup.directory,
      installation: setup.installation,
      router: setup.router,
      mode,
      log: () => undefined,
    });
  return {
    runtime: await open(),
    reopen: open,
    leftovers: (identity: WorkloadIdentity) => leftovers(setup.directory, identity),
  };
};

describeRuntimeContract('host, namespaces', subject('auto'), {
  without: { siblings: 'the network of the machine is shared' },
});
describeRuntimeContract('host, plain', subject('plain'), {
  without: {
    siblings: 'the network of the machine is shared',
    absolutePaths: 'only what lies below a WORKDIR can be used',
  },
});
