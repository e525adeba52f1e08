/**
 * Memory of a watched service, and requests of a deployment beside those of kubectl: `node --expose-gc bench/kubernetes.ts`.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import { createKubernetesRuntime } from '#runtimes/kubernetes/index.ts';
import { namespaceOf } from '#runtimes/kubernetes/labels.ts';
import { companionsOf, deploymentOf } from '#runtimes/kubernetes/objects.ts';
import { environmentPolicy } from '#runtimes/kubernetes/policies.ts';
import { openCluster, removeMade } from '#runtimes/kubernetes/testing.ts';
import { ClusterCache } from '#runtimes/kubernetes/watch/cache.ts';
import { FakeApi, podStatus } from '#runtimes/kubernetes/watch/fake-api.fixture.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { findOrStartCluster } from '#test/harness/kubernetes-cluster.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

const SERVICES = 2_000;
const PODS = 2;

const heapAfterGc = (): number => {
  globalThis.gc!();
  return process.memoryUsage().heapUsed;
};

/** Fields of a real object that are not kept: their owners, and what the cluster adds to a pod. */
const ballast = (bytes: number) => ({ managedFields: [{ manager: 'kubelet', fieldsV1: { 'f:x': {} }, note: 'x'.repeat(bytes) }] }); // prettier-ignore

/** Bytes that are kept of a service of two pods, and the milliseconds until all services are known. */
async function measureMemory(): Promise<{ bytes: number; ms: number }> {
  const api = await FakeApi.start();
  for (let n = 0; n < SERVICES; n++) {
    const identity = { ...newIdentity('test'), serviceId: randomUUID() };
    const { serviceId } = identity;
    const { metadata, spec } = deploymentOf(newSpec(identity, 'registry.example/shop:1'));
    const release = { generation: 1, deployment: { metadata, spec } };
    const record = { generation: 1, hostname: `app-${n}`, serving: release, candidate: null, isStopped: false };
    api.put('deployments', `app-${n}`, serviceId, { metadata: ballast(2_000), spec, status: { replicas: PODS } });
    api.put('configmaps', `quarterdeck-${n}`, serviceId, { data: { record: JSON.stringify(record) } });
    api.put('services', `app-${n}`, serviceId, { metadata: ballast(1_000) });
    for (let pod = 0; pod < PODS; pod++)
      api.put('pods', `app-${n}-${randomUUID().slice(0, 10)}`, serviceId, {
        ...podStatus(true),
        metadata: { ...ballast(4_000), creationTimestamp: new Date().toISOString() },
      });
  }
  const cluster = api.connect();
  const before = heapAfterGc();
  const started = performance.now();
  const cache = new ClusterCache(cluster);
  const leave = cache.use({ changed: () => undefined });
  while (!cache.isCurrent) await sleep(5);
  const ms = performance.now() - started;
  const bytes = (heapAfterGc() - before) / SERVICES;
  leave();
  await cache.close();
  await cluster.connection.close();
  await api.stop();
  return { bytes, ms };
}

async function countRequests(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const counter = () => void count++;
  subscribe('undici:request:create', counter);
  await work();
  unsubscribe('undici:request:create', counter);
  return count;
}

/** Counts the requests that kubectl logs. */
async function countKubectl(kubectl: string, kubeconfig: string, commands: string[][]): Promise<number> {
  const file = path.join(tmpdir(), `kubeconfig-${randomUUID()}`);
  await writeFile(file, kubeconfig, { mode: 0o600 });
  let count = 0;
  for (const command of commands) {
    const { stderr } = await promisify(execFile)(kubectl, ['--kubeconfig', file, '-v=6', ...command], {
      timeout: 60_000,
    });
    count += stderr.match(/(verb="|\s)(GET|POST|PUT|PATCH|DELETE)"? (url=")?https?:/g)?.length ?? 0;
  }
  return count;
}

/** Requests of a first deployment and of the next one. */
async function measureRequests() {
  const { cluster: found, stop } = await findOrStartCluster(process.env);
  const { options, cluster } = openCluster(found, randomUUID());
  const runtime = createKubernetesRuntime(options);
  const deploy = async (spec: WorkloadSpec) =>
    runtime.progress!(await runtime.submit(spec, newContext()), newContext());
  try {
    runtime.watch!({ changed: () => undefined });
    const script = 'mkdir -p /www; echo ok > /www/healthz; exec httpd -f -p 8080 -h /www';
    const make = (changes: Partial<WorkloadSpec> = {}) =>
      newSpec(newIdentity(cluster.installation), BUSYBOX_IMAGE, { entrypoint: ['sh', '-c', script], resources: { cpuMilli: 50, memoryMib: 32 }, ...changes }); // prettier-ignore
    await deploy(make());
    const spec = make();
    const ours = [await countRequests(() => deploy(spec)), await countRequests(() => deploy(nextSpec(spec)))];
    const kubectl = findProgram('kubectl');
    if (!kubectl) return { ours, theirs: null };
    const other = make();
    const theirs = [];
    for (const release of [other, nextSpec(other)]) {
      const namespace = namespaceOf(release.identity);
      const items = [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { 'quarterdeck.installation': cluster.installation } } }, environmentPolicy(release.identity), ...companionsOf(release), deploymentOf(release)]; // prettier-ignore
      const file = path.join(tmpdir(), `objects-${randomUUID()}.json`);
      await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
      const status = ['-n', namespace, 'rollout', 'status', `deployment/${release.hostname}`];
      theirs.push(await countKubectl(kubectl, found.kubeconfig, [['apply', '-f', file], status]));
    }
    return { ours, theirs };
  } finally {
    await removeMade(cluster);
    await runtime.close();
    await cluster.connection.close();
    await stop();
  }
}

const { bytes, ms } = await measureMemory();
console.log(`${SERVICES} services of ${PODS} pods: ${Math.round(bytes)} bytes each, known after ${Math.round(ms)} ms`);
const { ours, theirs } = await measureRequests();
console.log(`requests of a first deployment and of the next: ${ours.join(', ')}`);
console.log(theirs ? `of kubectl apply and kubectl rollout status: ${theirs.join(', ')}` : 'kubectl is not installed');
