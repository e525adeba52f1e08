import type { Registry } from 'prom-client';
import type { Base } from '#app/install.ts';
import type { Runtimes } from '#app/runtimes.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';
import { NodeHousekeeping } from '#housekeeping/index.ts';
import { createExecutionWorker, createWorker } from '#app/engine.ts';
import { createStates, listenForStates } from '#app/terraform.ts';
import { MACHINE_RECORDS } from '#clusters/machine-records.ts';
import { TASKS } from '#app/tasks.ts';
import { CertificateWatcher } from '#services/capabilities/service/custom-domains/certificate-watcher.ts';
import { RunningWatcher } from '#deployments/watchers/running-watcher.ts';
import { createAlertLoops } from '#delivery/alerts/index.ts';
import { createWebhookDelivery } from '#delivery/webhooks/index.ts';
import { AuditSealer, Witness } from '#platform/events/chain/index.ts';
import { copyTasks } from '#platform/copies/index.ts';
import { createOutgoing } from '#resources/alert-receiver/index.ts';
import { createPeopleMail } from '#resources/sign-in/index.ts';
import { listenForWork } from '#platform/work/index.ts';
import { Schedule } from '#platform/work/schedule.ts';
import type { Tracer } from '#platform/telemetry/index.ts';
import { createClusterWorker } from '#clusters/work/worker.ts';
import { DEPLOYMENTS_BY_KIND, KINDS } from '#services/mount.ts';
import { MetricSampler } from '#services/metrics/index.ts';
import { createImages } from '#services/images/registry-images.ts';
import { createTagLoop } from '#services/moved-tags/index.ts';
import { createPreviewLoops } from '#services/previews/index.ts';
import { createPushLoops } from '#services/pushes/index.ts';
import { submit } from '#services/capabilities/service/actions/request.ts';
import { TreeMeter } from '#runtimes/tools/disk-walk/index.ts';
import { START_AGAIN } from '#services/capabilities/service/rollback/index.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { folderBytes } from '#runtimes/tools/folder-size.ts';
import { removeAbandoned } from '#runtimes/tools/work-folders.ts';
import { createArgoCdLoop } from '#services/kinds/argocd-app/index.ts';

/** Starts everything that works without being asked over HTTP, and answers what stops it again. */
export async function startBackground(
  base: Base,
  runtimes: Runtimes,
  sources: OrganizationSources,
  tracer: Tracer,
  metrics: Registry,
): Promise<() => Promise<void>> {
  const platform = { ...base.platform, db: base.engineDatabase.db };
  const states = createStates(platform);
  const engine = { ...base, pretendsSources: true };
  const deployments = createWorker(engine, runtimes, sources, tracer, states);
  const executions = createExecutionWorker(engine, runtimes, sources, tracer, states);
  const clusters = createClusterWorker({
    platform,
    nodeId: base.nodeId,
    checkRuntime: async (cluster) => {
      try {
        return await (await runtimes.runtimeOf(cluster)).check();
      } catch (error) {
        if (error instanceof RuntimeError) return { ok: false, description: error.message, limits: [] };
        throw error;
      }
    },
  });
  const outgoing = createOutgoing(base.settings);
  const webhooks = createWebhookDelivery({ platform, nodeId: base.nodeId, http: outgoing.http });
  const alerts = createAlertLoops({ platform, nodeId: base.nodeId, outgoing });
  const mail = createPeopleMail(platform, base.nodeId);
  const argoCd = createArgoCdLoop(platform, base.nodeId);
  const backups = new BackupWorker({ platform, nodeId: base.nodeId, runtimes });
  const pushes = createPushLoops({ platform, kinds: KINDS, sources }, base.nodeId);
  const tags = createTagLoop({ platform, kinds: KINDS, images: createImages(platform) }, base.nodeId);
  const previews = createPreviewLoops({ platform, kinds: KINDS, sources }, base.nodeId);
  const others = [executions, clusters, argoCd, webhooks, ...alerts, ...mail, backups, ...pushes, tags, ...previews];
  const loops = [deployments, ...others];
  const messages = listenForWork(base.directConfig, loops, platform);
  const schedule = new Schedule([...TASKS, ...copyTasks(base.settings, base.directConfig)], {
    platform,
    nodeId: base.nodeId,
  });
  const sealer = new AuditSealer(platform, new Witness(base.settings.dataDir, base.installation));
  const certificates = new CertificateWatcher(platform, runtimes.router, base.nodeId, metrics, runtimes);
  const watcher = new RunningWatcher({
    platform,
    runtimes,
    nodeId: base.nodeId,
    machine: MACHINE_RECORDS,
    again: START_AGAIN,
  });
  const { nodeId, installation } = base;
  const { listClusters } = MACHINE_RECORDS;
  const sampler = new MetricSampler({ platform, runtimes, nodeId, listClusters });
  const housekeeping = new NodeHousekeeping({
    platform,
    runtimes,
    nodeId,
    installation,
    registry: metrics,
    folderBytes,
    removeAbandoned,
    checkoutMeter: new TreeMeter(),
    kinds: DEPLOYMENTS_BY_KIND,
    stopService: (context, place, id) => submit(context, place, 'STOP', [id], { automatic: true }),
  });

  const watchers = [sealer, watcher, certificates, housekeeping, sampler];

  const stop = async () => {
    // All at once: one that waits for what does not answer keeps none of the others from giving back their work.
    await Promise.all([schedule.stop(), messages.close(), ...[...loops, ...watchers].map((one) => one.stop())]);
    await states.close();
  };
  try {
    await listenForStates(platform, states);
    await base.patiently(() => deployments.start());
    for (const loop of others) loop.start();
    await base.patiently(() => schedule.start());
  } catch (error) {
    // It is tried again: what has begun would go on beside the next one.
    await stop();
    throw error;
  }
  for (const one of watchers) one.start();
  return stop;
}
