import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Kind } from '#services/kind.ts';
import { CAPABILITY_ROWS, hasCapability } from '#services/kinds/matrix.ts';
import { KINDS } from '#services/mount.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ASKS_LOOPBACK, useImages } from '#test/harness/images.ts';
import { kindsPage } from '../../../scripts/kinds-page.ts';
import { CELL_TESTS, type Cell } from './cells.ts';
import { SAMPLES } from './samples.ts';

const images = await useImages();
const app = useApp(
  { ...ASKS_LOOPBACK, QUARTERDECK_DATABASE_IMAGE_PREFIX: `${images.host}/` },
  { runtimeOf: async () => engine.runtime },
);
const engine = useEngine(app);
const routes = allRoutes();

/** Creates a service of the kind in an environment of its own. */
async function makeCell(kind: Kind): Promise<Cell> {
  const sample = SAMPLES[kind.kind]!;
  const [admin, stranger] = [await app.organization(), await app.organization()];
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  const place = { admin, environmentId: environment.id as string, images, tag: '1.0' };
  const name = `one ${newId().slice(0, 8)}`;
  const body = { ...(await sample.body(place)), name };
  const { id } = ok(await admin.post(`/environment/${environment.id}/${kind.path}`, body), 201);
  const isThere = () =>
    engine.runtime.leftovers({ serviceId: id } as WorkloadIdentity).some((what) => !what.startsWith('image'));
  return { ...place, kind, sample, url: `/${kind.path}/${id}`, id, name, stranger, isThere };
}

describe('docs/kinds.md', () => {
  test('is what the endpoints say; `npm run gen` writes it', () => {
    expect(readFileSync(path.join(import.meta.dirname, '../../../docs/kinds.md'), 'utf8')).toBe(kindsPage());
  });
});

/** Kinds whose services the API creates; the others are tested beside their sources. */
const made = KINDS.filter((kind) => hasCapability(routes, kind, CAPABILITY_ROWS[0]!));

test.each(made)('$path has a sample', (kind) => expect(SAMPLES[kind.kind], kind.kind).toBeDefined());

describe.each(made)('a service of kind $path', (kind) => {
  const rows = CAPABILITY_ROWS.filter((row) => hasCapability(routes, kind, row));
  test.each(rows)('has $name as all kinds have it', async ({ name }) => {
    expect(CELL_TESTS[name], name).toBeDefined();
    await CELL_TESTS[name]!(await makeCell(kind));
  });
});
