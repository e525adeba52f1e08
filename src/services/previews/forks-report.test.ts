import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { useProvider } from '#services/previews/provider.fixture.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const fixture = usePreviews(app);
const { webhookOf, tell, worker, settled } = fixture;
const { provider, place, told } = useProvider(app, fixture);
const [a, b] = [commit('a'), commit('b')];
const FORK = { headRepository: 2 };

test('the pull request of a fork says which commit waits for approval, how it is given, and what the preview lacks', async () => {
  const { admin, environment, key } = await place();
  ok(await admin.post(`/environment/${environment}/secret`, { key: 'PAYMENTS', value: 'top-secret' }), 201);
  const hook = await webhookOf(admin, key);
  worker();
  const says = async () => {
    await settled(admin);
    await told(admin);
    const text = provider.comments.get('1')!;
    for (const hidden of ['PAYMENTS', 'top-secret']) expect(text).not.toContain(hidden);
    return text;
  };
  const statusOf = (of: string) => provider.statuses.findLast((one) => one.commit === of)?.state;
  ok(await tell(hook, { ...FORK, head: a }), 202);
  const waits = await says();
  const [waiting] = ok(await admin.get(`/environment/${environment}/forkPreview`), 200).results;
  const url = `/environment/${environment}/forkPreview/${waiting.id}/approval`;
  expect(waits).toContain(`Waits for approval of commit ${a.slice(0, 12)}`);
  expect(waits).toContain(`\`PUT ${url}\` with \`{"commit_id": "${a}"}\``);
  expect(statusOf(a)).toBe('pending');

  ok(await admin.put(url, { commit_id: a }), 200);
  const made = await says();
  expect(made).toContain('Runs without secrets');
  expect(made).not.toContain('approval');

  ok(await tell(hook, { ...FORK, action: 'synchronize', head: b, at: 1 }), 202);
  const later = await says();
  expect(later).toContain(`Waits for approval of commit ${b.slice(0, 12)}`);
  expect(later).toContain(`The preview stays at ${a.slice(0, 12)}.`);
  expect(later).toContain(`{"commit_id": "${b}"}`);
  expect(statusOf(b)).toBe('pending');
  await sql`delete from deployment where organization_id = ${admin.organizationId}`.execute(app.db);
});
