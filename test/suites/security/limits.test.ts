import { describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { compilePolicy } from '#platform/access/policy.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

describe('a wrong method or path is answered with what would be right', () => {
  test.each([
    ['PATCH', '/organization', 'GET, POST'],
    ['DELETE', '/openapi.json', 'GET'],
    ['POST', '/api/v1/openapi.json?x=1', 'GET'],
  ] as const)('%s %s is 405 with Allow: %s', async (method, url, allowed) => {
    const answer = await app.anonymous(method, url);
    expect([answer.status, answer.headers.allow]).toEqual([405, allowed]);
    expect(answer.body.message).toBe(`${method} is not allowed here: this path takes ${allowed}.`);
  });

  test('a path that leads nowhere stays 404, and the root leads to the document', async () => {
    ok(await app.anonymous('GET', '/nothing/here'), 404);
    const root = await app.anonymous('GET', '/');
    expect([root.status, root.headers.location]).toEqual([302, '/openapi.json']);
  });
});

test('every number of a query has a least and a greatest value', () => {
  const unbounded = allRoutes().flatMap((route) =>
    Object.entries(
      (route.query?.properties ?? {}) as Record<string, { type?: string; maximum?: number; minimum?: number }>,
    )
      .filter(
        ([, { type, maximum, minimum }]) =>
          (type === 'integer' || type === 'number') && (maximum === undefined || minimum === undefined),
      )
      .map(([name]) => `${route.id}: ${name}`),
  );
  expect(unbounded).toEqual([]);
});

test('a page beyond the last that can be asked for is 400', async () => {
  const admin = await app.organization();
  const url = `/organization/${admin.organizationId}/project`;
  expect(ok(await admin.get(`${url}?page=99999999999999999999`), 400).errors[0].field).toBe('page');
  expect(ok(await admin.get(`${url}?page=1000000000`), 200).results).toEqual([]);
});

describe('a body of 1 MiB that is wrong everywhere', () => {
  // The largest number of values that fits into a body.
  const wide = JSON.stringify({ name: 1, admin_emails: Array.from({ length: 49_990 }, () => 1234567890123456768) });
  test('holds up nobody for more than 50 ms', async () => {
    const admin = await app.organization();
    const send = async () => expect((await admin.post('/organization', wide)).status).toBe(400);
    await send();
    expect(await leastBlockedBy(send)).toBeLessThan(LONGEST_BLOCK_MS);
  });

  test('is refused with at least one fault, a small one with all of them', async () => {
    const admin = await app.organization();
    expect(ok(await admin.post('/organization', wide), 400).errors.length).toBeGreaterThan(0);
    const small = { name: 1, description: 2, website_url: 3 };
    expect(ok(await admin.post('/organization', small), 400).errors.length).toBe(3);
  });
});

describe('a policy', () => {
  const AT = { organizationId: '00000000-0000-4000-8000-000000000000' };
  test('that counts a long text again and again decides in less than 50 ms, and denies', async () => {
    const text = `package a\nallow if {\n${Array.from({ length: 190 }, () => `count(text) > 0`).join('\n')}\n}\ntext := "${'x'.repeat(10_000)}"\n`;
    const policy = compilePolicy(text);
    let allowed = true;
    expect(await leastBlockedBy(async () => (allowed = policy.allows('project.read', AT)))).toBeLessThan(
      LONGEST_BLOCK_MS,
    );
    expect(allowed).toBe(false);
  });

  test('is asked once about each action and place', () => {
    const policy = compilePolicy(`package a\nallow if input.action == "project.read"\n# ${Math.random()}`);
    expect([
      policy.allows('project.read', AT),
      policy.allows('project.read', AT),
      policy.allows('project.edit', AT),
    ]).toEqual([true, true, false]);
  });
});
