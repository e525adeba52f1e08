import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { nextRun } from '#kernel/cron.ts';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';
import { ASKS_LOOPBACK, makeRegistry, useImages } from '#test/harness/images.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp(ASKS_LOOPBACK);
useEngine(app);

/** Time zones with two changes a year, or with changes close to each other. */
const ZONES = ['Europe/Paris', 'Australia/Lord_Howe', 'Africa/Casablanca'];

const ALL = '0-59';
/** Valid expressions that take the longest to evaluate: rare days, days that never come, every minute of them. */
const RARE = [
  '* * 29 2 */7',
  '0 0 29 2 */7',
  `*/1 */1 29 2 */7`,
  '* * 31 2 *',
  '59 23 31 2,4,6,9,11 *',
  '* * 31 2,4,6,9,11 *',
  '* * 30-31 2 */7',
  `${'0,1,'.repeat(50)}59 * 31 2,4,6,9,11 *`,
  `${ALL},${ALL},${ALL} 0-23,0-23,0-23 31 FEB,APR,JUN,SEP,NOV *`,
];
/** Expressions that are invalid, or as long as possible. */
const WRITTEN = [
  `${'0-59,'.repeat(45)}1 * * * *`,
  `${'*/1,'.repeat(60)}1 * * * *`,
  `* * ${'1-31/1,'.repeat(30)}1 * *`,
  '1/99999999999999999999 * * * *',
  '0-99999999999999999999 * * * *',
  `${'1-'.repeat(120)}1 * * * *`,
  `${'/'.repeat(247)} * * * *`,
  `${' '.repeat(127)}@yearly${' '.repeat(121)}`,
  `@${'a'.repeat(254)}`,
  'SUN-SAT/7 * * JAN-DEC/12 ?',
  '\u0660 * * * *',
];

/** Returns the fields of bodies that take a cron expression, by operation. */
function cronFields(): string[] {
  const found: string[] = [];
  const walk = (schema: any, at: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    if (/cron expression/i.test(String(schema.description ?? ''))) found.push(at);
    for (const one of schema.anyOf ?? schema.allOf ?? []) walk(one, at);
    if (schema.items) walk(schema.items, at);
    for (const [key, one] of Object.entries(schema.properties ?? {})) walk(one, `${at}.${key}`);
  };
  for (const route of allRoutes()) if (route.body) walk(route.body, route.id);
  return [...new Set(found)].sort();
}

describe('a hostile cron expression', () => {
  test('is taken by no other operations than those that are tried here', () => {
    expect(cronFields()).toEqual(['createJob.schedule.cronjob.scheduled_at', 'editJob.schedule.cronjob.scheduled_at']);
  });

  test.each(RARE)('%s is followed in every zone and holds up nobody for more than 50 ms', async (expression) => {
    // A time after which the next common days are far away.
    const after = new Date('2097-03-01T00:00:00Z');
    for (const zone of ZONES)
      for (const from of [after, new Date('2026-03-29T00:30:00Z')]) {
        const follow = () => Promise.resolve(nextRun(expression, zone, from));
        expect(await leastBlockedBy(follow), `${expression} in ${zone}`).toBeLessThan(LONGEST_BLOCK_MS);
      }
  });

  test('in a job that is made, edited and deployed holds up nobody for more than 50 ms', async () => {
    const images = await useImages();
    const admin = await app.organization();
    const registry_id = await makeRegistry(admin, images);
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
    const body = (scheduled_at: string, timezone = ZONES[0]) => ({
      name: 'job',
      source: { image: { image_name: `${images.host}/team/app`, tag: '1', registry_id } },
      schedule: { cronjob: { scheduled_at, timezone } },
    });
    const { id } = ok(await admin.post(`/environment/${environment.id}/job`, body('0 3 * * *')), 201);
    const faults: string[] = [];
    for (const expression of [...RARE, ...WRITTEN]) {
      let status = 0;
      const edit = async () => ({ status } = await admin.put(`/job/${id}`, body(expression)));
      const make = async () => admin.post(`/environment/${environment.id}/job`, { ...body(expression), name: newId() });
      const deploy = async () => ok(await admin.post(`/job/${id}/deploy?wait=30`), 200);
      const works = RARE.includes(expression) ? [edit, make, deploy] : [edit, make];
      for (const work of works) {
        const blocked = await leastBlockedBy(work);
        if (blocked > LONGEST_BLOCK_MS) faults.push(`${expression}: ${Math.round(blocked)} ms`);
      }
      if (![200, 400].includes(status) || (RARE.includes(expression) && status !== 200))
        faults.push(`${expression}: ${status}`);
    }
    expect(faults).toEqual([]);
  }, 240_000);
});

describe('a hostile kubeconfig', () => {
  let admin: Actor;
  let url: string;
  beforeAll(async () => {
    admin = await app.organization();
    const [{ id }] = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results;
    await app.db.updateTable('cluster').set({ runtime: 'kubernetes' }).where('id', '=', id).execute();
    url = `/organization/${admin.organizationId}/cluster/${id}/kubeconfig`;
  });

  const SERVER = 'server: https://10.0.0.1:6443';
  const head = [
    'apiVersion: v1\nkind: Config\ncurrent-context: main',
    'contexts: [{name: main, context: {cluster: c, user: u}}]',
  ].join('\n');
  const config = (cluster: string, user: string, more = '') =>
    `${more}${head}\nclusters: [{name: c, cluster: {${SERVER}${cluster}}}]\nusers: [{name: u, user: {token: t${user}}}]\n`;
  const many = (count: number, line: (n: number) => string) => Array.from({ length: count }, (_, n) => line(n));
  /** Aliases of aliases, each twice as large as the one before. */
  const doubled = `x0: &x0 [a, a]\n${many(60, (n) => `x${n + 1}: &x${n + 1} [*x${n}, *x${n}]`).join('\n')}\n`;

  /** Accepted statuses. Reading takes about five seconds, which is the limit: a slow machine refuses it. */
  const EITHER = [204, 400];
  const HOSTILE: [what: string, text: string, statuses: number[]][] = [
    ['deep lists', config('', `, x: ${'['.repeat(450_000)}`), [400]],
    ['deep maps', config('', `, x: ${'{a: '.repeat(200_000)}`), [400]],
    ['deep maps in block style', `${head}\n${many(1_200, (n) => `${' '.repeat(n)}a:`).join('\n')}`, [400]],
    ['30,000 keys of a user', config('', `, ${many(30_000, (n) => `k${n}: 1`).join(', ')}`), EITHER],
    ['30,000 keys at the top', `${many(30_000, (n) => `k${n}: 1`).join('\n')}\n${config('', '')}`, EITHER],
    ['the same key 50,000 times', `${'a: 1\n'.repeat(50_000)}${config('', '')}`, [400]],
    [
      '20,000 users',
      config('', `}}, ${many(20_000, (n) => `{name: n${n}, user: {token: t}}`).join(', ')}, {name: z, user: {token: t`),
      EITHER,
    ],
    ['aliases of aliases', config('', '', doubled), [400]],
    ['merged aliases of aliases', config('', ', <<: *x60', doubled), [400]],
    ['10,000 aliases', config('', '', `x: &x {a: 1}\ny: [${'*x, '.repeat(10_000)}*x]\n`), [400]],
    ['20,000 anchors', config('', '', `x: [${many(20_000, (n) => `&a${n} 1`).join(', ')}]\n`), EITHER],
    ['a map that holds itself', config('', '', 'x: &x {a: *x}\n'), [400]],
    ['100,000 short items', config('', `, x: [${'1,'.repeat(100_000)}1]`), EITHER],
    ['a long text', config(`, certificate-authority-data: ${'A'.repeat(900_000)}`, ''), [204]],
    ['escapes', config('', `, x: "${'\\u00e9'.repeat(150_000)}"`), [204]],
    ['50,000 documents', `${config('', '')}${'---\n'.repeat(50_000)}`, [400]],
    ['50,000 tags', config('', `, x: [${'!a 1, '.repeat(50_000)}1]`), EITHER],
  ];

  test.each(HOSTILE)(
    'of %s is taken or refused, and holds up nobody for more than 50 ms',
    async (_what, text, expected) => {
      const headers = { 'content-type': 'application/x-yaml' };
      expect(Buffer.byteLength(text)).toBeLessThan(1024 * 1024);
      let status = 0;
      const set = async () => ({ status } = await admin.call('PUT', url, text, headers));
      expect(await leastBlockedBy(set)).toBeLessThan(LONGEST_BLOCK_MS);
      expect(expected).toContain(status);
      if (status !== 204) return;
      const read = async () => ({ status } = await admin.get(url));
      expect(await leastBlockedBy(read)).toBeLessThan(LONGEST_BLOCK_MS);
      expect([200, 400]).toContain(status);
    },
    60_000,
  );
});
