import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import type { ChartSpec, LogLine, RuntimeContext } from '#runtimes/runtime.ts';
import { find, list } from '../cluster.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from '../index.ts';
import type { ClusterObject, ConfigMap } from '../kinds.ts';
import { namespaceOf } from '../labels.ts';
import { TestGateway, leftoversOf, openCluster, removeMade } from '../testing.ts';
import { listRevisions } from './release.ts';
import { ChartFolders, WEB_CHART, findTestHelm, newChart } from './testing.ts';

const environment = inject('kubernetes');
const installation = randomUUID();
const { options, cluster } = openCluster(environment, installation);
const charts = new ChartFolders();
const gateway = new TestGateway(cluster);
let runtime: KubernetesRuntime;
let web: string;

beforeAll(async () => {
  runtime = createKubernetesRuntime({ ...options, helm: findTestHelm() });
  web = await charts.make(WEB_CHART);
});
afterAll(async () => {
  await removeMade(cluster);
  await cluster.connection.close();
  await runtime.close();
  await charts.remove();
});

async function deploy(spec: ChartSpec, context: RuntimeContext = newContext()) {
  const handle = await runtime.submit(spec, context);
  await runtime.progress!(handle, context);
  return handle;
}

const next = (spec: ChartSpec, changes: Partial<ChartSpec> = {}): ChartSpec => ({
  ...spec,
  ...changes,
  identity: { ...spec.identity, generation: spec.identity.generation + 1 },
});

const yaml = (content: string) => [{ name: 'values.yaml', content }];
const textOf = async ({ identity, hostname }: ChartSpec) =>
  (await find<ConfigMap>(cluster, 'ConfigMap', namespaceOf(identity), `${hostname}-config`))?.data?.['text'];
const remove = (spec: ChartSpec) => runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());

async function linesOf(handle: Awaited<ReturnType<typeof deploy>>): Promise<string[]> {
  const lines: LogLine[] = [];
  const reading = { tail: 100, follow: false, signal: AbortSignal.timeout(20_000) };
  for await (const line of runtime.logs(handle, reading)) lines.push(line);
  return lines.map(({ text }) => text);
}

describe('a chart', () => {
  test(
    'is applied, observed, published, stopped, restarted, upgraded, and leaves nothing',
    { timeout: 120_000 },
    async () => {
      const host = `shop-${randomUUID().slice(0, 8)}.localhost`;
      const spec = newChart(newIdentity(installation), web, { values: yaml('text: first') });
      const ports = [{ id: 'p', internalPort: 80, protocol: 'HTTP' as const, service: `${spec.hostname}-web` }];
      Object.assign(spec, { ports, routes: [{ host, portId: 'p' }] });
      const handle = await deploy(spec);
      expect(await runtime.observe(handle)).toMatchObject({
        state: 'running',
        generation: 1,
        instances: [{ state: 'ready', name: expect.stringContaining(`${spec.hostname}-web-`) }],
      });
      expect(await linesOf(handle)).toContain('serving first');
      expect((await gateway.get(host, '/')).body).toBe('first');
      expect(await runtime.chartServices!(handle)).toEqual([
        {
          name: `${spec.hostname}-web`,
          type: 'ClusterIP',
          ports: [{ name: 'http', port: 80 }],
          selectors: [{ key: 'app', value: `${spec.hostname}-web` }],
        },
      ]);

      await runtime.stop({ ...spec.identity, generation: 2 }, handle, newContext());
      expect(await runtime.observe(handle)).toMatchObject({ state: 'stopped', instances: [] });
      await runtime.restart(handle, 3, newContext());
      await runtime.progress!(handle, newContext());
      expect(await runtime.observe(handle)).toMatchObject({ state: 'running' });

      await runtime.stop({ ...spec.identity, generation: 4 }, handle, newContext());
      const upgraded = { ...spec, identity: { ...spec.identity, generation: 5 }, values: yaml('text: second') };
      const after = await deploy(upgraded);
      expect(await runtime.observe(after)).toMatchObject({ state: 'running', generation: 5 });
      expect(await textOf(spec)).toBe('second');
      await expect(deploy(spec)).rejects.toMatchObject({ code: 'superseded' });

      await runtime.stop({ ...spec.identity, generation: 6 }, after, newContext());
      const broken = yaml('text: broken\nisBroken: true');
      const failing = { ...spec, identity: { ...spec.identity, generation: 7 }, values: broken, timeoutSeconds: 8 };
      const told = newContext();
      await expect(runtime.submit(failing, told)).rejects.toMatchObject({ code: 'not_ready' });
      expect(told.lines).toContain('The release before is stopped, as it was before this deployment.');
      expect(await runtime.observe(after)).toMatchObject({ state: 'stopped', instances: [] });
      await runtime.restart(after, 8, newContext());
      await runtime.progress!(after, newContext());
      expect([await textOf(spec), (await runtime.observe(after)).state]).toEqual(['second', 'running']);

      await remove(spec);
      expect(await leftoversOf(cluster, spec.identity)).toEqual([]);
      for (const kind of ['Deployment', 'Service', 'Secret'] as const)
        expect(await list<ClusterObject>(cluster, kind, namespaceOf(spec.identity), '')).toEqual([]);
      expect(await runtime.observe(after)).toMatchObject({ state: 'absent' });
    },
  );
});

/** Returns the command lines of all processes of this machine. */
async function commandLines(): Promise<string[]> {
  const numbers = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  // Processes end meanwhile.
  const read = numbers.map((number) => readFile(`/proc/${number}/cmdline`, 'utf8').catch(() => ''));
  return Promise.all(read);
}

const revisionsOf = ({ identity, hostname }: ChartSpec) => listRevisions(cluster, identity, hostname);
const lastStatus = async (spec: ChartSpec) => (await revisionsOf(spec)).at(-1)?.status;

describe('an upgrade of a chart', () => {
  test(
    'that does not get ready is taken back and explained; one that is cut off is gone on with; a cancel takes it back',
    { timeout: 180_000 },
    async () => {
      const spec = newChart(newIdentity(installation), web, { values: yaml('text: first') });
      const handle = await deploy(spec);

      const broken = next(spec, { values: yaml('text: broken\nisBroken: true'), timeoutSeconds: 8 });
      const told = newContext();
      await expect(runtime.submit(broken, told)).rejects.toMatchObject({
        code: 'not_ready',
        message: expect.stringMatching(
          /was not ready within 8 s \(timeout_sec\): it ended with status 3.*no configuration/s,
        ),
      });
      expect(told.lines.join('\n')).toMatch(/it ended with status 3/);
      expect(await textOf(spec)).toBe('first');
      expect(await runtime.observe(handle)).toMatchObject({ state: 'running' });

      // The first attempt is cut off as by the death of its process, which helm does not survive.
      const secret = `secret-${randomUUID()}`;
      const slow = next(broken, { values: yaml(`text: ${secret}\ndelay: 60`), timeoutSeconds: 60 });
      const lease = new AbortController();
      const first = {
        ...newContext(),
        signal: lease.signal,
        attempt: { number: 1, holds: () => !lease.signal.aborted },
      };
      const cut = runtime.submit(slow, first);
      cut.catch(() => undefined);
      await expect.poll(() => lastStatus(spec)).toBe('pending-upgrade');
      const lines = await commandLines();
      expect(lines.filter((line) => line.includes('upgrade') && line.includes(spec.hostname))).not.toEqual([]);
      expect(lines.filter((line) => line.includes(secret))).toEqual([]);
      lease.abort('lost');
      await expect(cut).rejects.toMatchObject({ code: 'aborted' });
      expect(await lastStatus(spec)).toBe('pending-upgrade');
      const second = { ...newContext(), attempt: { number: 2, holds: () => true } };
      await runtime.submit({ ...slow, values: yaml('text: second') }, second);
      expect(second.lines.join('\n')).toContain('was cut off (pending-upgrade): it is taken back');
      expect(await textOf(spec)).toBe('second');
      await expect(runtime.submit(slow, first)).rejects.toMatchObject({
        code: expect.stringMatching(/superseded|aborted/),
      });

      const cancel = new AbortController();
      const third = next(slow, { values: yaml('text: third\ndelay: 60') });
      const cancelled = runtime.submit(third, { ...newContext(), signal: cancel.signal });
      cancelled.catch(() => undefined);
      await expect.poll(() => lastStatus(spec)).toBe('pending-upgrade');
      cancel.abort('cancel');
      await expect(cancelled).rejects.toMatchObject({ code: 'aborted' });
      expect(await textOf(spec)).toBe('second');
      expect(await lastStatus(spec)).toBe('deployed');
      await remove(third);
    },
  );

  test(
    'tells what its hooks write, and a failed hook is its reason; removal takes hooks and volumes',
    { timeout: 120_000 },
    async () => {
      const values = yaml('text: a\nvolume: true\nhook: echo "migrating"; exit 0');
      const spec = newChart(newIdentity(installation), web, { values, timeoutSeconds: 40 });
      const context = newContext();
      await deploy(spec, context);
      expect(context.lines.join('\n')).toMatch(/hook .*: migrating/);
      // The volume is left out as well: helm cannot take that back, and nothing of it was changed yet.
      const failing = next(spec, { values: yaml('text: b\nhook: echo "no table"; exit 7') });
      await expect(runtime.submit(failing, newContext())).rejects.toMatchObject({
        code: 'failed',
        message: expect.stringMatching(/^The hook .*-hook-\w+ of the chart .* ended with status 7\. .*no table$/s),
      });
      expect(await textOf(spec)).toBe('a');
      const policy = 'hookPolicy: before-hook-creation,hook-succeeded,hook-failed';
      const removed = next(failing, { values: yaml(`text: b\nhook: echo "no row"; exit 7\n${policy}`) });
      await expect(runtime.submit(removed, newContext())).rejects.toThrow(/ended with status 7\. .*no row$/s);
      const good = next(removed, { values: yaml(`text: c\nvolume: true\nhook: echo "done"\n${policy}`) });
      const told = newContext();
      await deploy(good, told);
      expect(told.lines.filter((line) => line.startsWith('hook '))).toEqual([expect.stringMatching(/: done$/)]);
      expect(await textOf(spec)).toBe('c');
      await remove(good);
      await expect.poll(() => list<ClusterObject>(cluster, 'Pod', namespaceOf(spec.identity), '')).toEqual([]);
      expect(await list<ClusterObject>(cluster, 'Job', namespaceOf(spec.identity), '')).toEqual([]);
    },
  );
});

describe('the border of a chart', () => {
  test('keeps it in the namespace of its environment, also by lookup', { timeout: 120_000 }, async () => {
    const other = newIdentity(installation);
    const elsewhere = namespaceOf(other);
    await cluster.connection.call('POST', '/api/v1/namespaces', {
      body: {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: elsewhere, labels: { 'quarterdeck.installation': installation } },
      },
    });
    const spec = newChart(newIdentity(installation), web, { timeoutSeconds: 6 });
    const refusals: [object, boolean, RegExp][] = [
      [{ ofHost: true }, false, /makes no pods: .*violates PodSecurity "baseline/],
      [{ lookup: { version: 'v1', kind: 'Secret', namespace: elsewhere, name: '' } }, false, /is in the namespace qd-/],
      [{ lookup: { version: 'v1', kind: 'Secret', namespace: '', name: '' } }, false, /whole cluster/],
      [{ foreign: 'default' }, false, /namespace default, and the chart may have objects of its environment only/],
      [{ role: true }, false, /is of the whole cluster/],
      [
        { lookup: { version: 'v1', kind: 'Secret', namespace: 'kube-system', name: '' } },
        true,
        /secrets of other namespaces/,
      ],
      [{ lookup: { version: 'v1', kind: 'ConfigMap', namespace: elsewhere, name: '' } }, true, /is not the chart's/],
      [{ lookup: { version: 'v1', kind: 'ConfigMap', namespace: '', name: '' } }, true, /of all namespaces/],
      [{ lookup: { version: 'v1', kind: 'Namespace', namespace: '', name: '' } }, true, /list namespaces/],
      [{ foreign: elsewhere }, true, /is not the chart's/],
    ];
    for (const [values, allowClusterWide, message] of refusals)
      await expect(
        runtime.submit({ ...spec, allowClusterWide, values: yaml(JSON.stringify(values)) }, newContext()),
        JSON.stringify(values),
      ).rejects.toMatchObject({ message: expect.stringMatching(message) });
    const trusted = { ...spec, allowClusterWide: true, values: yaml('role: true') };
    await runtime.submit(trusted, newContext());
    const role = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${spec.hostname}-role`;
    expect(await cluster.connection.get(role)).toBeDefined();
    await remove(spec);
    await expect(cluster.connection.get(role)).rejects.toMatchObject({ status: 404 });
  });
});

describe('a comparison', () => {
  test('tells what a deployment would change, and changes nothing', { timeout: 60_000 }, async () => {
    const spec = newChart(newIdentity(installation), web, { values: yaml('text: before') });
    await deploy(spec);
    const context = newContext();
    await runtime.diff!(next(spec, { values: yaml('text: after') }), context);
    expect(context.lines.join('\n')).toContain(
      `~ ConfigMap ${spec.hostname}-config is changed\n    -   text: before\n    +   text: after`,
    );
    expect(await revisionsOf(spec)).toHaveLength(1);
    expect(await textOf(spec)).toBe('before');
    await remove(spec);
  });
});
