import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createHostRuntime } from '#runtimes/host/index.ts';
import { findMachine } from '#runtimes/host/machine.ts';
import { tryNamespaceNetwork } from '#runtimes/host/network/namespace-network.ts';
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

type Variant = { mode?: 'plain'; network?: 'machine' };

const subject = (variant: Variant) => async (setup: ContractSetup) => {
  // Without namespaces the workloads' accounts need a way to their folders; the one of the suite is closed to others.
  if (variant.mode === 'plain') chmodSync(dirname(setup.directory), 0o711);
  const { directory: dataDir, installation, router } = setup;
  const open = () => createHostRuntime({ dataDir, installation, router, log: () => undefined, ...variant });
  return {
    runtime: await open(),
    reopen: open,
    leftovers: (identity: WorkloadIdentity) => leftovers(dataDir, identity),
  };
};

const shared = { siblings: 'in the network of the machine services do not reach each other by name' };
const report = await tryMachine();

if (report.networks) describeRuntimeContract('host, namespaces and networks', subject({}));
if (report.namespaces)
  describeRuntimeContract('host, namespaces', subject({ network: 'machine' }), { without: shared });
describeRuntimeContract('host, plain', subject({ mode: 'plain' }), {
  without: { ...shared, absolutePaths: 'only what lies below a WORKDIR can be used' },
});

/** What this machine can do: what it can't is not tested here. */
async function tryMachine(): Promise<{ namespaces: boolean; networks: boolean }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'host-'));
  try {
    const machine = await findMachine({ dataDir, mode: 'auto', hidden: [] });
    const namespaces = machine.mode === 'namespaces';
    return {
      namespaces,
      networks: namespaces && (await tryNamespaceNetwork(machine.tools.ip, machine.asRoot)) === null,
    };
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}
