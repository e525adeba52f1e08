import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ACTIONS, includes, LEVELS, type Action, type Level } from '#platform/access/actions.ts';
import { highestLevelOf } from '#platform/access/granting.ts';
import {
  ENVIRONMENT_MODES,
  levelAt,
  permits,
  type Grant,
  type Location,
  type RolePermissions,
} from '#platform/access/principal.ts';

const organizationId = 'o';
const PROJECTS = ['p1', 'p2', 'p3'];
const CLUSTERS = ['c1', 'c2'];

const arbitraryRole: fc.Arbitrary<RolePermissions> = fc.record({
  clusters: fc.uniqueArray(
    fc.record({
      cluster_id: fc.constantFrom(...CLUSTERS),
      permission: fc.constantFrom('VIEWER' as const, 'ENV_CREATOR' as const, 'ADMIN' as const),
    }),
    { selector: (entry) => entry.cluster_id },
  ),
  projects: fc.uniqueArray(
    fc.record({
      project_id: fc.constantFrom(...PROJECTS),
      is_admin: fc.boolean(),
      permissions: fc.uniqueArray(
        fc.record({
          environment_type: fc.constantFrom<string>(...ENVIRONMENT_MODES),
          permission: fc.constantFrom('NO_ACCESS' as const, 'VIEWER' as const, 'DEPLOYER' as const, 'MANAGER' as const),
        }),
        { selector: (entry) => entry.environment_type },
      ),
    }),
    { selector: (entry) => entry.project_id },
  ),
});

const plain = (level: Level): Grant => ({ organizationId, level, roleId: null, custom: null });
const custom = (role: RolePermissions): Grant => ({ organizationId, level: 'READ', roleId: 'r', custom: role });
const arbitraryGrant = fc.oneof(
  fc.constantFrom<Level>('READ', 'DEPLOY', 'WRITE', 'ADMIN').map(plain),
  arbitraryRole.map(custom),
);
const arbitraryPlace: fc.Arbitrary<Location> = fc.record(
  {
    organizationId: fc.constant(organizationId),
    projectId: fc.constantFrom(...PROJECTS),
    mode: fc.constantFrom<string>(...ENVIRONMENT_MODES),
    clusterId: fc.constantFrom(...CLUSTERS),
  },
  { requiredKeys: ['organizationId'] },
);
const arbitraryAction = fc.constantFrom(...(Object.keys(ACTIONS) as Action[]));
const may = (grant: Grant, action: Action, at: Location) =>
  permits({ id: 'x', kind: 'user', userId: 'x', name: 'x', grants: [grant] }, action, at);

describe('a custom role', () => {
  const role: RolePermissions = {
    clusters: [
      { cluster_id: 'c1', permission: 'ENV_CREATOR' },
      { cluster_id: 'c2', permission: 'ADMIN' },
    ],
    projects: [
      { project_id: 'p1', is_admin: true, permissions: [] },
      {
        project_id: 'p2',
        is_admin: false,
        permissions: [
          { environment_type: 'DEVELOPMENT', permission: 'MANAGER' },
          { environment_type: 'STAGING', permission: 'DEPLOYER' },
          { environment_type: 'PRODUCTION', permission: 'NO_ACCESS' },
        ],
      },
    ],
  };
  test.each<[Omit<Location, 'organizationId'>, Level]>([
    [{}, 'READ'],
    [{ projectId: 'p1' }, 'ADMIN'],
    [{ projectId: 'p1', mode: 'PRODUCTION' }, 'ADMIN'],
    [{ projectId: 'p2', mode: 'DEVELOPMENT' }, 'WRITE'],
    [{ projectId: 'p2', mode: 'STAGING' }, 'DEPLOY'],
    [{ projectId: 'p2', mode: 'PREVIEW' }, 'READ'],
    [{ projectId: 'p2', mode: 'PRODUCTION' }, 'NONE'],
    [{ projectId: 'p2' }, 'READ'],
    [{ projectId: 'p3', mode: 'PRODUCTION' }, 'NONE'],
    [{ projectId: 'p3' }, 'NONE'],
    [{ clusterId: 'c1' }, 'WRITE'],
    [{ clusterId: 'c2' }, 'ADMIN'],
    [{ clusterId: 'c3' }, 'WRITE'],
    [{ clusterId: '' }, 'WRITE'],
  ])('has at %o the level %s', (place, level) => {
    expect(levelAt(custom(role), { organizationId, ...place })).toBe(level);
  });

  test('changes a project itself only with the right in all of its modes', () => {
    fc.assert(
      fc.property(arbitraryRole, fc.constantFrom(...PROJECTS), (permissions, projectId) => {
        const ofProject = levelAt(custom(permissions), { organizationId, projectId });
        const ofModes = ENVIRONMENT_MODES.map((mode) =>
          levelAt(custom(permissions), { organizationId, projectId, mode }),
        );
        if (includes(ofProject, 'DEPLOY')) for (const level of ofModes) expect(includes(level, ofProject)).toBe(true);
        expect(ofProject === 'NONE').toBe(ofModes.every((level) => level === 'NONE'));
      }),
    );
  });

  test('reads exactly the modes of the projects that it names without saying NO_ACCESS', () => {
    fc.assert(
      fc.property(arbitraryRole, (permissions) => {
        const grant = custom(permissions);
        const closed = (projectId: string, mode: string) => {
          const said = permissions.projects.find((project) => project.project_id === projectId);
          if (!said) return true;
          const isClosed = said.permissions.some(
            (entry) => entry.environment_type === mode && entry.permission === 'NO_ACCESS',
          );
          return isClosed && !said.is_admin;
        };
        for (const projectId of PROJECTS)
          for (const mode of ENVIRONMENT_MODES)
            expect(may(grant, 'environment.read', { organizationId, projectId, mode })).toBe(!closed(projectId, mode));
      }),
    );
  });
});

describe('any grant', () => {
  test('permits a lower level wherever it permits a higher one', () => {
    fc.assert(
      fc.property(arbitraryGrant, arbitraryPlace, arbitraryAction, arbitraryAction, (grant, at, one, other) => {
        if (includes(ACTIONS[one], ACTIONS[other]) && may(grant, one, at)) expect(may(grant, other, at)).toBe(true);
      }),
    );
  });

  test('gives nothing in another organization', () => {
    fc.assert(
      fc.property(arbitraryGrant, arbitraryPlace, arbitraryAction, (grant, at, action) => {
        expect(may(grant, action, { ...at, organizationId: 'other' })).toBe(false);
      }),
    );
  });

  test('within another never does more than either, at any place', () => {
    fc.assert(
      fc.property(arbitraryGrant, arbitraryGrant, arbitraryPlace, arbitraryAction, (own, within, at, action) => {
        expect(may({ ...own, within }, action, at)).toBe(may(own, action, at) && may(within, action, at));
      }),
    );
  });

  test('reaches its highest level somewhere and nowhere more', () => {
    fc.assert(
      fc.property(arbitraryGrant, arbitraryPlace, (grant, at) => {
        expect(includes(highestLevelOf(grant), levelAt(grant, at))).toBe(true);
      }),
    );
    // A role without a project still makes environments on clusters that it does not name.
    expect(highestLevelOf(custom({ clusters: [], projects: [] }))).toBe('WRITE');
    expect(LEVELS.at(-1)).toBe('ADMIN');
  });

  test('with a policy does only what the policy allows as well', () => {
    const policy = { allows: (action: Action) => action === 'project.read' };
    expect(may({ ...plain('ADMIN'), policy }, 'project.read', { organizationId })).toBe(true);
    expect(may({ ...plain('ADMIN'), policy }, 'project.edit', { organizationId })).toBe(false);
  });
});
