import { expect, test } from 'vitest';
import { newId, newOrderedId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { maintainEventPartitions } from '#platform/events/partitions.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_EVENT_RETENTION_DAYS: '60' });

/** Ids of the targets that the events of a year have. */
const TARGETS: Record<string, string> = { 2026: newId(), 2028: newId() };

const at = (now: string) => ({ ...app.platform, clock: { now: () => new Date(now) } });

const write = (organization: string, moment: string) =>
  app.db
    .insertInto('audit_event')
    .values({
      id: newOrderedId(),
      organization_id: organization,
      at: new Date(moment),
      event_type: 'CREATE',
      target_type: 'PROJECT',
      target_id: TARGETS[moment.slice(0, 4)] ?? newId(),
      target_name: 'x',
      triggered_by: 'somebody',
      origin: 'API',
    })
    .execute();

/** Lists the partition of each event of an organization, in their order. */
const places = async (organization: string) =>
  (
    await sql<{ place: string }>`select tableoid::regclass::text as place from audit_event
      where organization_id = ${organization} order by at`.execute(app.db)
  ).rows.map((row) => row.place);

const partitions = async () =>
  (
    await sql<{ name: string }>`select inhrelid::regclass::text as name from pg_inherits
      where inhparent = 'audit_event'::regclass order by 1`.execute(app.db)
  ).rows.map((row) => row.name);

test('events lie in partitions by month, made two ahead, and none is lost when one is made after its events', async () => {
  const { organizationId } = await app.organization();
  await app.db.deleteFrom('audit_event').execute();
  await write(organizationId, '2027-11-30T23:59:59.999Z');
  await write(organizationId, '2027-12-01T00:00:00.000Z');
  await write(organizationId, '2028-01-05T00:00:00.000Z');
  expect(await places(organizationId)).toEqual(Array(3).fill('audit_event_default'));
  await Promise.all([1, 2, 3].map(() => maintainEventPartitions(at('2027-12-15T12:00:00Z'))));
  expect(await partitions()).toEqual([
    'audit_event_2027_12',
    'audit_event_2028_01',
    'audit_event_2028_02',
    'audit_event_default',
  ]);
  expect(await places(organizationId)).toEqual(['audit_event_default', 'audit_event_2027_12', 'audit_event_2028_01']);
  await write(organizationId, '2028-02-29T23:00:00.000Z');
  await write(organizationId, '2028-03-01T00:00:00.000Z');
  expect((await places(organizationId)).slice(3)).toEqual(['audit_event_2028_02', 'audit_event_default']);
});

test('events past the retention are dropped with their month, and from the default partition', async () => {
  const { organizationId } = await app.organization();
  await app.db.deleteFrom('audit_event').execute();
  await maintainEventPartitions(at('2028-01-01T00:00:00Z'));
  for (const moment of ['2026-05-01T00:00:00Z', '2028-01-20T00:00:00Z', '2028-02-20T00:00:00Z', '2028-09-20T00:00:00Z'])
    await write(organizationId, moment);
  await maintainEventPartitions(at('2028-04-01T00:00:00Z'));
  // 60 days before 1 April 2028 is 1 February: January is over, February is not.
  expect(await places(organizationId)).toEqual(['audit_event_2028_02', 'audit_event_default']);
  const targets = await app.db
    .selectFrom('audit_target')
    .select('target_id')
    .where('organization_id', '=', organizationId)
    .where('target_name', '=', 'x')
    .execute();
  expect(targets.map((target) => target.target_id)).toEqual([TARGETS[2028]]);
  expect(await partitions()).toEqual(
    ['2028_02', '2028_03', '2028_04', '2028_05', '2028_06', 'default'].map((name) => `audit_event_${name}`),
  );
});

test('events that are written while their partition is made are neither refused nor lost', async () => {
  const { organizationId } = await app.organization();
  await app.db.deleteFrom('audit_event').execute();
  const settings = { ...app.platform.settings, eventRetentionDays: 10_000 };
  let written = 0;
  for (let year = 2030; year < 2036; year++) {
    let making = true;
    const made = maintainEventPartitions({ ...at(`${year}-06-15T00:00:00Z`), settings }).finally(
      () => (making = false),
    );
    const writer = async () => {
      for (; making; written++) await write(organizationId, `${year}-0${6 + (written % 3)}-15T00:00:00Z`);
    };
    await Promise.all([made, writer(), writer(), writer(), writer()]);
  }
  expect(await places(organizationId)).toHaveLength(written);
  expect(await places(organizationId)).not.toContain('audit_event_default');
});
