import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import type { ChartSpec, LogLine, RuntimeContext } from '#runtimes/runtime.ts';
import { find, list, pathOf } from '../cluster.ts';
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
  test('is applied, observed, published, stopped, restarted, upgraded, and leaves nothing', { timeout: 120_000 }, async () => {
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

    await remove(spec);
    expect(await leftoversOf(cluster, spec.identity)).toEqual([]);
    for (const kind of ['Deployment', 'Service', 'Secret'] as const)
      expect(await list<ClusterObject>(cluster, kind, namespaceOf(spec.identity), '')).toEqual([]);
    expect(await runtime.observe(after)).toMatchObject({ state: 'absent' });
  });
});
