import { describe, expect, test, vi } from 'vitest';
import { useApp, ok } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

// Registration of the kind: facts by name, and the descriptor in the list. Nothing else in the program knows the kind.
vi.mock('#kernel/service-kinds.ts', async (original) => {
  const { KIND_FACTS } = await original<typeof import('#kernel/service-kinds.ts')>();
  const facts = { ...KIND_FACTS.APPLICATION, group: 'widgets', hostPrefix: 'widget' };
  return { KIND_FACTS: { ...KIND_FACTS, WIDGET: facts } };
});
vi.mock('#services/kinds/index.ts', async (original) => {
  const { KINDS, READ_KINDS } = await original<typeof import('#services/kinds/index.ts')>();
  const { widget } = await import('./widget/index.ts');
  return { KINDS: [...KINDS, widget], READ_KINDS };
});

const { allRoutes } = await import('#app/routes.ts');
const { makeApiDocument } = await import('#services/api-document/document.ts');
const { kindsPage } = await import('../../../scripts/kinds-page.ts');

const app = useApp();
useEngine(app);

type Json = Record<string, any>;
const document: Json = makeApiDocument(allRoutes());

/** Yields every object in the document, with the path to it. */
function* nodesOf(node: unknown, at: string[] = []): Generator<[string, Json]> {
  if (!node || typeof node !== 'object') return;
  if (!Array.isArray(node)) yield [at.join('.'), node];
  for (const [key, value] of Object.entries(node)) yield* nodesOf(value, [...at, key]);
}
const nodes = [...nodesOf(document)];

describe('a ninth kind that has every fact of an application', () => {
  test('stands in every list of kinds of the document in which applications stand', () => {
    const lists = nodes.filter(([, { enum: values }]) => Array.isArray(values) && values.includes('APPLICATION'));
    expect(lists.length).toBeGreaterThan(15);
    expect(lists.filter(([, { enum: values }]) => !values.includes('WIDGET')).map(([at]) => at)).toEqual([]);
  });

  test('has a list of its own wherever answers and bodies group services by kind', () => {
    const grouped = nodes.filter(([at, node]) => at.endsWith('.properties') && node['applications']);
    expect(grouped.length).toBeGreaterThan(3);
    expect(grouped.filter(([, node]) => !node['widgets']).map(([at]) => at)).toEqual([]);
    const selected = nodes.filter(([at, node]) => at.endsWith('.properties') && node['application_ids']);
    expect(selected.filter(([, node]) => !node['widget_ids']).map(([at]) => at)).toEqual([]);
    expect(selected).not.toEqual([]);
  });

  test('has the endpoints of its capabilities, each with a tag that is described', () => {
    const paths = Object.keys(document.paths);
    for (const path of [
      '/widget/{widgetId}',
      '/widget/{widgetId}/deploy',
      '/environment/{environmentId}/widget/status',
    ])
      expect(paths).toContain(path);
    expect(paths).not.toContain('/widget/{widgetId}/commit');
    const tags = document.tags.filter(({ name }: Json) => name.startsWith('Widget'));
    expect(tags.length).toBeGreaterThan(3);
    for (const tag of tags) expect(tag.description).toContain('widget');
  });

  test('stands in the matrix of capabilities', () => {
    const [head] = kindsPage()
      .split('\n')
      .filter((line) => line.startsWith('| capability'));
    expect(head).toContain('widget');
    expect(kindsPage()).toContain('[widget](kinds/widget.md)');
  });

  test('is made, deployed, found in lists, histories and events, and deleted', { timeout: 60_000 }, async () => {
    const admin = await app.organization();
    const { organizationId } = admin;
    const project = ok(await admin.post(`/organization/${organizationId}/project`, { name: 'p' }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const at = `/environment/${environment.id}`;
    const made = ok(await admin.post(`${at}/widget`, { name: 'w', colour: 'red' }), 201);
    expect(made).toMatchObject({ colour: 'red', service_type: 'WIDGET' });
    ok(await admin.post(`/widget/${made.id}/environmentVariable`, { key: 'A', value: '1' }), 201);
    const deployed = ok(await admin.post(`${at}/service/deploy?wait=30`, { widgets: [{ id: made.id }] }), 200);
    expect(deployed.state).toBe('DEPLOYED');
    const statuses = ok(await admin.get(`${at}/statuses`), 200);
    expect(statuses.widgets).toMatchObject([{ id: made.id, state: 'DEPLOYED' }]);
    const services = ok(await admin.get(`${at}/services`), 200).results;
    expect(services).toMatchObject([{ id: made.id, service_type: 'WIDGET' }]);
    const history = ok(await admin.get(`${at}/deploymentHistory`), 200).results;
    expect(history[0].widgets).toMatchObject([{ id: made.id }]);
    const events = ok(await admin.get(`/organization/${organizationId}/events?targetType=WIDGET`), 200).events;
    expect(events.map(({ target_name }: Json) => target_name)).toContain('w');
    ok(await admin.delete(`/widget/${made.id}?wait=30`), 204);
    await expect.poll(async () => (await admin.get(`/widget/${made.id}`)).status).toBe(404);
  });
});
