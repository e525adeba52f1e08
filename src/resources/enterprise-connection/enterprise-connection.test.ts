import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readSettings } from '#platform/settings/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { startIssuer } from '#test/harness/issuer.ts';

const issuer = await startIssuer();
const lines: string[] = [];
const settings = {
  ...issuer.settings,
  QUARTERDECK_OIDC_GROUPS_CLAIM: 'groups',
  QUARTERDECK_OIDC_GROUPS_ORGANIZATIONS: '*',
  QUARTERDECK_LOG_LEVEL: 'warn',
};
const app = useApp(settings, {}, undefined, (line) => lines.push(line));
afterAll(() => issuer.close());

const urlOf = ({ organizationId }: Actor, name = 'okta') =>
  `/organization/${organizationId}/enterpriseconnection/${name}`;

const save = (admin: Actor, changes: object = {}, name = 'okta') =>
  admin.put(urlOf(admin, name), {
    connection_name: name,
    default_role: '',
    enforce_group_sync: true,
    group_mappings: {},
    ...changes,
  });

/** Person of the identity provider; each sign-in gets a later token. */
const person = () => {
  const sub = newId();
  let at = Math.floor(Date.now() / 1000) - 1000;
  const token = (groups: unknown, claims: object = {}) => issuer.sign({ sub, groups, iat: ++at, ...claims });
  const session = async (groups: unknown, claims: object = {}) => app.session(await token(groups, claims));
  const signIn = async (groups: unknown, claims: object = {}): Promise<string> =>
    ok(await (await session(groups, claims)).get('/account'), 200).id;
  return { sub, token, session, signIn };
};

const roleOf = async (admin: Actor, userId: string): Promise<string | undefined> => {
  const { results } = ok(await admin.get(`/organization/${admin.organizationId}/member`), 200);
  return results.find(({ id }: { id: string }) => id === userId)?.role_name;
};

const customRole = async (admin: Actor, name: string): Promise<string> =>
  ok(await admin.post(`/organization/${admin.organizationId}/customRole`, { name }), 201).id;

describe('the groups of a person give their role', () => {
  test('at the sign-in: the request with the token is made with it, and an event tells of it', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { devops: ['ops', 'sre'], viewer: ['staff'] } }), 200);
    const ada = person();
    const session = await ada.session(['sre']);
    ok(await session.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
    const { id } = ok(await session.get('/account'), 200);
    expect(await roleOf(admin, id)).toBe('devops');
    const url = `/organization/${admin.organizationId}/events?targetId=${id}`;
    expect(ok(await admin.get(url), 200).events).toMatchObject([
      { event_type: 'CREATE', sub_target_type: 'MEMBER_ROLE', triggered_by: 'enterprise connection okta' },
    ]);
  });

  test('which is the highest of several; without a group it is the default role, and none where there is none', async () => {
    const admin = await app.organization();
    const custom = await customRole(admin, 'Auditors');
    const group_mappings = { viewer: ['staff'], ADMIN: ['heads'], devops: ['ops'], [custom]: ['audit'] };
    ok(await save(admin, { group_mappings }), 200);
    for (const [groups, role] of [
      [['staff', 'heads', 'ops'], 'admin'],
      [['ops', 'staff'], 'devops'],
      [['audit'], 'Auditors'],
      [['STAFF'], undefined],
      [[], undefined],
      ['staff', 'viewer'],
    ] as const)
      expect(await roleOf(admin, await person().signIn(groups)), String(groups)).toBe(role);
    ok(await save(admin, { group_mappings, default_role: 'billing' }), 200);
    expect(await roleOf(admin, await person().signIn(['other']))).toBe('billing');
    expect(await roleOf(admin, await person().signIn(null))).toBe('billing');
  });

  test('anew at each sign-in where that is enforced; who is in no group any more is no member any more', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { devops: ['ops'], viewer: ['staff'] } }), 200);
    const ada = person();
    const id = await ada.signIn(['ops']);
    await ada.signIn(['staff']);
    expect(await roleOf(admin, id)).toBe('viewer');
    const { results } = ok(await admin.get(`/organization/${admin.organizationId}/availableRole`), 200);
    const role_id = results.find(({ name }: { name: string }) => name === 'admin').id;
    ok(await admin.put(`/organization/${admin.organizationId}/member`, { user_id: id, role_id }), 200);
    expect(await roleOf(admin, id)).toBe('admin');
    await ada.signIn(['staff']);
    expect(await roleOf(admin, id)).toBe('viewer');
    await ada.signIn([]);
    expect(await roleOf(admin, id)).toBeUndefined();
    await ada.signIn(['ops']);
    expect(await roleOf(admin, id)).toBe('devops');
  });

  test('only at the first sign-in that gives one where it is not enforced', async () => {
    const admin = await app.organization();
    ok(await save(admin, { enforce_group_sync: false, group_mappings: { devops: ['ops'], viewer: ['staff'] } }), 200);
    const ada = person();
    const id = await ada.signIn(['other']);
    expect(await roleOf(admin, id)).toBeUndefined();
    await ada.signIn(['ops']);
    await ada.signIn(['staff']);
    await ada.signIn([]);
    expect(await roleOf(admin, id)).toBe('devops');
    ok(await admin.call('DELETE', `/organization/${admin.organizationId}/member`, { user_id: id }), 204);
    await ada.signIn(['ops']);
    expect(await roleOf(admin, id)).toBeUndefined();
  });

  test('but an older token changes nothing, nor does the same one again', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { admin: ['heads'], viewer: ['staff'] } }), 200);
    const ada = person();
    const [old, late] = [await ada.session(['heads']), await ada.session(['staff'])];
    const { id } = ok(await late.get('/account'), 200);
    ok(await old.get('/account'), 200);
    expect(await roleOf(admin, id)).toBe('viewer');
    ok(await admin.call('DELETE', `/organization/${admin.organizationId}/member`, { user_id: id }), 204);
    ok(await late.get('/account'), 200);
    expect(await roleOf(admin, id)).toBeUndefined();
  });

  test('at once for a connection that was saved since', async () => {
    const admin = await app.organization();
    const ada = person();
    const session = await ada.session(['ops']);
    const { id } = ok(await session.get('/account'), 200);
    ok(await save(admin, { group_mappings: { viewer: ['ops'] } }), 200);
    ok(await session.get('/account'), 200);
    expect(await roleOf(admin, id)).toBe('viewer');
    ok(await save(admin, { group_mappings: { devops: ['ops'] } }), 200);
    ok(await session.get('/account'), 200);
    expect(await roleOf(admin, id)).toBe('devops');
  });

  test('once, however many requests come with the token at the same time', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { viewer: ['staff'] } }), 200);
    const session = await person().session(['staff']);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => session.get(`/organization/${admin.organizationId}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    const { results } = ok(await admin.get(`/organization/${admin.organizationId}/member`), 200);
    expect(results).toHaveLength(2);
  });

  test('and leave the members of other ways where they give none', async () => {
    const admin = await app.organization();
    const ada = person();
    const id = await ada.signIn([]);
    const { results } = ok(await admin.get(`/organization/${admin.organizationId}/availableRole`), 200);
    const role_id = results.find(({ name }: { name: string }) => name === 'devops').id;
    const row = { organization_id: admin.organizationId, user_id: id, role_id };
    await app.db.insertInto('member').values(row).execute();
    ok(await save(admin, { group_mappings: { viewer: ['staff'] } }), 200);
    await ada.signIn(['other']);
    expect(await roleOf(admin, id)).toBe('devops');
    await ada.signIn(['staff']);
    expect(await roleOf(admin, id)).toBe('viewer');
  });

  test('but never take the role of the last owner', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { owner: ['board'], viewer: ['staff'] } }), 200);
    const [ada, grace] = [person(), person()];
    const [first, second] = [await ada.signIn(['board']), await grace.signIn(['board'])];
    await app.db.deleteFrom('member').where('user_id', '=', admin.userId).execute();
    const owner = { ...admin, ...(await ada.session(['board'])) };
    await grace.signIn(['staff']);
    expect(await roleOf(owner, second)).toBe('viewer');
    await ada.signIn(['staff']);
    expect(await roleOf(owner, first)).toBe('owner');
    expect(lines.join()).toContain('they stay the owner');
  });

  test('also after who saved the connection has left', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { admin: ['heads'], devops: ['ops'] } }), 200);
    const head = await person().session(['heads']);
    const session = { ...admin, ...head };
    ok(await save(session, { group_mappings: { admin: ['heads'], devops: ['ops'] } }), 200);
    const { id } = ok(await head.get('/account'), 200);
    ok(await admin.call('DELETE', `/organization/${admin.organizationId}/member`, { user_id: id }), 204);
    expect(await roleOf(admin, await person().signIn(['ops']))).toBe('devops');
  });

  test('of a nested claim; where the provider left them out for their number, roles stay', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { devops: ['ops'] } }), 200);
    const { settings: values } = app.platform;
    const ada = person();
    const id = await ada.signIn(['ops']);
    await ada.signIn(null, { _claim_names: { groups: 'src1' } });
    expect(await roleOf(admin, id)).toBe('devops');
    try {
      values.oidcGroupsClaim = 'realm_access.roles';
      await ada.signIn(null, { realm_access: { roles: ['other'] } });
      expect(await roleOf(admin, id)).toBeUndefined();
      await ada.signIn(null, { realm_access: { roles: ['ops'] } });
      expect(await roleOf(admin, id)).toBe('devops');
      await ada.signIn(null, { realm_access: 'ops' });
      expect(await roleOf(admin, id)).toBeUndefined();
    } finally {
      values.oidcGroupsClaim = 'groups';
    }
  });

  test('in the organization of the connection alone', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    ok(await save(admin, { group_mappings: { admin: ['ops'] } }), 200);
    const session = await person().session(['ops']);
    ok(await session.get(`/organization/${admin.organizationId}`), 200);
    ok(await session.get(`/organization/${other.organizationId}`), 404);
  });
});

describe('a connection', () => {
  test('is answered with the present names of its roles, and an event tells what was changed', async () => {
    const admin = await app.organization();
    const custom = await customRole(admin, 'Auditors');
    const group_mappings = { [custom.toUpperCase()]: ['audit', 'audit'], Viewer: ['staff', 'all hands'] };
    const saved = ok(await save(admin, { default_role: 'BILLING', group_mappings }), 200);
    expect(saved).toEqual({
      connection_name: 'okta',
      default_role: 'billing',
      enforce_group_sync: true,
      group_mappings: { Auditors: ['audit'], viewer: ['all hands', 'staff'] },
    });
    expect(ok(await admin.get(urlOf(admin)), 200)).toEqual(saved);
    const url = `/organization/${admin.organizationId}/enterpriseconnection`;
    expect(ok(await admin.get(url), 200).results).toEqual([saved]);
    ok(await save(admin, { enforce_group_sync: false }), 200);
    const { events } = ok(
      await admin.get(`/organization/${admin.organizationId}/events?targetType=ENTERPRISE_CONNECTION`),
      200,
    );
    expect(events.map((event: { event_type: string }) => event.event_type)).toEqual(['UPDATE', 'CREATE']);
    expect(JSON.parse(events[0].original_change)).toEqual(saved);
    ok(await admin.delete(`/organization/${admin.organizationId}/customRole/${custom}`), 204);
  });

  test('is refused with a role that is unknown, named twice, or of another organization', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const foreign = await customRole(stranger, 'Foreign');
    const message = async (changes: object): Promise<string> => ok(await save(admin, changes), 400).message;
    expect(await message({ group_mappings: { ops: ['devops'] } })).toMatch(
      /group_mappings\.ops: names no role of this organization/,
    );
    expect(await message({ group_mappings: { [foreign]: ['x'] } })).toContain(
      `group_mappings.${foreign}: names no role`,
    );
    expect(await message({ default_role: foreign })).toContain('default_role: names no role');
    expect(await message({ group_mappings: { viewer: ['a'], VIEWER: ['b'] } })).toContain('a second time');
    expect(await message({ group_mappings: { viewer: [' '] } })).toContain('none of them empty');
    expect(await message({ connection_name: 'auth0' })).toContain('connection_name: must be okta');
    ok(await admin.get(urlOf(admin)), 404);
  });

  test('is one for an organization, and its own: others are 409 and 404', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    ok(await save(admin), 200);
    expect(ok(await save(admin, {}, 'auth0'), 409).message).toContain('has the connection okta already');
    ok(await admin.get(urlOf(admin, 'auth0')), 404);
    ok(await stranger.get(urlOf(admin)), 404);
    ok(await (await admin.withScope('WRITE')).put(urlOf(admin), {}), 403);
  });

  test('gives owners only where an owner saves it', async () => {
    const admin = await app.organization();
    ok(await save(admin, { group_mappings: { admin: ['heads'] } }), 200);
    const head = await person().session(['heads']);
    const session = { ...admin, ...head };
    ok(await save(session, { group_mappings: { owner: ['heads'] } }), 403);
    ok(await save(session, { group_mappings: { admin: ['heads'], devops: ['ops'] } }), 200);
    ok(await save(admin, { group_mappings: { owner: ['board'] } }), 200);
  });

  test('keeps its roles from being deleted', async () => {
    const admin = await app.organization();
    const custom = await customRole(admin, 'Auditors');
    ok(await save(admin, { default_role: custom, group_mappings: { [custom]: ['audit'] } }), 200);
    const url = `/organization/${admin.organizationId}/customRole/${custom}`;
    expect(ok(await admin.delete(url), 409).message).toContain('2 groups of the enterprise connection');
  });

  test('is not found where groups are not read for the organization, and then gives no roles', async () => {
    const admin = await app.organization();
    ok(await save(admin, { default_role: 'viewer' }), 200);
    const { settings: values } = app.platform;
    const without = async (changes: object, work: () => Promise<void>) => {
      const before = { ...values };
      Object.assign(values, changes);
      try {
        await work();
      } finally {
        Object.assign(values, before);
      }
    };
    for (const changes of [{ oidcGroupsOrganizations: ['first'] }, { oidcGroupsClaim: '' }])
      await without(changes, async () => {
        expect(ok(await save(admin), 404).message).toContain('QUARTERDECK_OIDC_GROUPS_ORGANIZATIONS');
        ok(await admin.get(urlOf(admin)), 404);
        const url = `/organization/${admin.organizationId}/enterpriseconnection`;
        expect(ok(await admin.get(url), 200).results).toEqual([]);
        expect(await roleOf(admin, await person().signIn(['x']))).toBeUndefined();
      });
    await without({ oidcGroupsOrganizations: [admin.organizationId] }, async () => {
      expect(await roleOf(admin, await person().signIn(['x']))).toBe('viewer');
    });
  });

  test('is for organizations that the settings name', () => {
    const given = (text: string) => () => readSettings({ QUARTERDECK_OIDC_GROUPS_ORGANIZATIONS: text });
    expect(given('first, *')().oidcGroupsOrganizations).toEqual(['first', '*']);
    expect(given('acme')).toThrow('acme must be the id of an organization, first or *');
  });
});
