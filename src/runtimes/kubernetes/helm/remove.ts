import type { RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { list, remove, type Cluster } from '../cluster.ts';
import { unlessGone } from '../errors.ts';
import { LABEL, namespaceOf } from '../labels.ts';
import { changeRecord, withChart } from '../record/index.ts';
import { recordAnew } from './anew.ts';
import { Border, type Hook } from './border.ts';
import { runHelm } from './program.ts';
import { listRevisions, wasOpened } from './release.ts';
import { listChartWorkloads, type ChartWorkload } from './workloads.ts';

/** Seconds that the objects of a chart and its hooks have to go. */
const GONE_SECONDS = 300;

/** Removes the release of a chart, its volumes and the remains of its hooks. Its record is the caller's to remove. */
export async function uninstallChart(
  cluster: Cluster,
  identity: WorkloadIdentity,
  { hostname, hooks: known }: { hostname: string; hooks: Hook[] },
  context: RuntimeContext,
): Promise<void> {
  let isAltered = false;
  await changeRecord(
    cluster,
    identity,
    (present) => {
      // Helm ends a revision only where the record is one that the border trusts.
      const next = withChart(isAltered ? recordAnew(identity, hostname) : present, {});
      return next && { ...next, generation: identity.generation };
    },
    { replacesAltered: () => void (isAltered = true) },
  );
  const workloads = await listChartWorkloads(cluster, identity, hostname);
  const border = await Border.open(cluster, {
    identity,
    release: hostname,
    allowClusterWide: await wasOpened(cluster, identity),
    context,
  });
  try {
    if ((await listRevisions(cluster, identity, hostname)).length > 0)
      await uninstall(cluster, border, context, { identity, hostname });
  } finally {
    await border.close();
  }
  await removeVolumes(cluster, identity, workloads);
  const hooks = [...known, ...border.hooks];
  for (const { collection, name } of hooks)
    await unlessGone(
      cluster.connection.call('DELETE', `${collection}/${encodeURIComponent(name)}`, {
        body: { propagationPolicy: 'Background' },
      }),
    );
}

async function uninstall(
  cluster: Cluster,
  border: Border,
  { signal, log }: RuntimeContext,
  { identity, hostname }: { identity: WorkloadIdentity; hostname: string },
): Promise<void> {
  const namespace = namespaceOf(identity);
  const args = ['uninstall', hostname, '--namespace', namespace, '--wait', '--timeout', `${GONE_SECONDS}s`];
  const { exitCode, stderr } = await runHelm(cluster.helm, args, {
    border,
    namespace,
    signal,
    timeoutSeconds: GONE_SECONDS + 60,
    onLine: (line) => line.trim() !== '' && log(`helm: ${line}`),
  });
  if (exitCode === 0) return;
  const [refusal] = border.refusals;
  throw new RuntimeError('failed', `The chart was not removed: ${refusal ?? stderr.trim().slice(-2_000)}`);
}

/** Removes the volumes that StatefulSets of a chart made: Kubernetes keeps them, and they go with the service here. */
async function removeVolumes(cluster: Cluster, identity: WorkloadIdentity, workloads: ChartWorkload[]): Promise<void> {
  const namespace = namespaceOf(identity);
  const prefixes = workloads
    .filter(({ kind }) => kind === 'StatefulSet')
    .flatMap(({ metadata, spec }) =>
      (spec.volumeClaimTemplates ?? []).map((claim) => `${claim.metadata.name}-${metadata.name}-`),
    );
  if (prefixes.length === 0) return;
  for (const { metadata } of await list(cluster, 'PersistentVolumeClaim', namespace, `!${LABEL.service}`))
    if (prefixes.some((prefix) => metadata.name.startsWith(prefix) && /^\d+$/.test(metadata.name.slice(prefix.length))))
      await remove(cluster, 'PersistentVolumeClaim', namespace, metadata.name);
}
