import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readExecutionLog, readExecutionLogAfter } from '#deployments/executions/log.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();
const CHUNKS = 40;

/** Deployment whose log has a line of its execution and one of another service in each chunk; its first chunk cannot be unpacked. */
async function makeLog() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const { id } = await app.db
    .selectFrom('deployment')
    .select('id')
    .where('organization_id', '=', admin.organizationId)
    .executeTakeFirstOrThrow();
  const line = (serviceId: string, text: string) =>
    JSON.stringify({ at: '2026-01-01T00:00:00.000Z', serviceId, step: 'EXECUTING', text });
  const contentOf = (n: number) =>
    n === 1 ? Buffer.from('broken') : gzipSync(`${line(application.id, `own ${n}`)}\n${line(newId(), `other ${n}`)}`);
  await app.db
    .insertInto('deployment_log')
    .values(
      Array.from({ length: CHUNKS }, (_, index) => ({
        organization_id: admin.organizationId,
        deployment_id: id,
        sequence: index + 1,
        content: contentOf(index + 1),
        lines: 2,
      })),
    )
    .execute();
  return { scope: admin, execution: { id: newId(), deployment_id: id, service_id: application.id } };
}

describe('the log of an execution', () => {
  test('is read from its end, only as far as the wanted lines go', async () => {
    const { scope, execution } = await makeLog();
    const { lines, last } = await readExecutionLog(app.db, scope, execution, 20);
    expect(lines.map(({ text }) => text)).toEqual(Array.from({ length: 20 }, (_, index) => `own ${index + 21}`));
    expect(last).toBe(CHUNKS);
    expect(await readExecutionLogAfter(app.db, scope, execution, last)).toEqual({ lines: [], last, hasMore: false });
    expect((await readExecutionLogAfter(app.db, scope, execution, last - 1)).lines).toMatchObject([{ text: 'own 40' }]);
  });

  test('is read forwards in parts, each of which is limited', async () => {
    const { scope, execution } = await makeLog();
    const texts: string[] = [];
    const sizes: number[] = [];
    for (let last = 1, hasMore = true; hasMore;) {
      const part = await readExecutionLogAfter(app.db, scope, execution, last);
      sizes.push(part.lines.length);
      texts.push(...part.lines.map(({ text }) => text));
      ({ last, hasMore } = part);
    }
    expect(texts).toEqual(Array.from({ length: CHUNKS - 1 }, (_, index) => `own ${index + 2}`));
    expect(sizes).toEqual([16, 16, 7]);
  });

  test('of which more lines are wanted than there are is read to its beginning', async () => {
    const { scope, execution } = await makeLog();
    await expect(readExecutionLog(app.db, scope, execution, 1000)).rejects.toThrow('incorrect header');
    await app.db.deleteFrom('deployment_log').where('sequence', '=', 1).execute();
    expect((await readExecutionLog(app.db, scope, execution, 1000)).lines).toHaveLength(CHUNKS - 1);
    const empty = { ...execution, deployment_id: newId() };
    expect(await readExecutionLog(app.db, scope, empty, 1000)).toEqual({ lines: [], last: 0 });
  });
});
