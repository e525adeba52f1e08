import { expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import type { Claim } from '#deployments/executor/claims.ts';
import { readDeploymentLog } from '#deployments/logs/reader.ts';
import { DeploymentLog, type DeploymentLine } from '#deployments/logs/writer.ts';

const app = useApp();

/** A deployment as a worker has it that claimed it; and what its log holds. */
async function claimed() {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy`), 200);
  const deployment = await app.db
    .updateTable('deployment')
    .set({ status: 'RUNNING', claim_token: crypto.randomUUID() })
    .where('organization_id', '=', admin.organizationId)
    .returningAll()
    .executeTakeFirstOrThrow();
  const claim = { token: deployment.claim_token, deployment } as unknown as Claim;
  const lines = async () => {
    const all: DeploymentLine[] = [];
    for (let last = 0, hasMore = true; hasMore;) {
      const part = await readDeploymentLog(app.db, { organizationId: admin.organizationId }, deployment.id, last);
      ({ last, hasMore } = part);
      all.push(...part.lines);
    }
    return all;
  };
  return { claim, lines };
}

const MEGABYTE = 'x'.repeat(1 << 20);
const say = (log: DeploymentLog, text: string, error?: true) =>
  log.write({ serviceId: null, step: 'BUILD', text, ...(error ? { error } : {}) });

test('a log ends at 50 MB over all attempts, says so once, and still takes what made something fail', async () => {
  const { claim, lines } = await claimed();
  const first = await DeploymentLog.resume(app.db, claim);
  for (let n = 0; n < 30; n++) say(first, MEGABYTE);
  await first.flush();
  const second = await DeploymentLog.resume(app.db, claim);
  for (let n = 0; n < 30; n++) say(second, MEGABYTE);
  say(second, 'it failed', true);
  await second.flush();
  const written = await lines();
  expect(written.filter((line) => line.text === MEGABYTE)).toHaveLength(49);
  expect(written.slice(-2).map((line) => line.text)).toEqual([
    'The log has 50 MB: what follows is left out, but for errors.',
    'it failed',
  ]);
});

test('an error that comes as the log gets full is written, too', async () => {
  const { claim, lines } = await claimed();
  const log = await DeploymentLog.resume(app.db, claim);
  for (let n = 0; n < 49; n++) say(log, MEGABYTE);
  say(log, MEGABYTE, true);
  await log.flush();
  expect((await lines()).at(-1)?.error).toBe(true);
});
