import { KINDS } from '#services/mount.ts';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { cloudProviderRoutes } from '#resources/cloud-provider/index.ts';
import { newId } from '#kernel/ids.ts';
import { ACTIONS, includes, LEVELS, type Level } from '#platform/access/actions.ts';
import type { Route } from '#platform/http/route.ts';
import { ok, useApp, type Actor, type Answer, type Caller } from '#test/harness/app.ts';
import { accessTable } from '../../scripts/access-table.ts';
import { makeWorld, type World } from './world.ts';

const SCOPES = LEVELS.filter((level) => level !== 'NONE');

/** Operations without credentials: the secret in the link, or the signature of the call, is the credential; or the document is public. */
const PUBLIC = [
  'getBuildUsageReport',
  'deleteBuildUsageReport',
  'callAgenticWorkflowWebhook',
  'receiveGitPush',
  'receiveRegistryCall',
  'getOpenApiDocument',
  'getInvitationGuide',
  'listQoveryIps',
  'signIn',
  'getSignInLink',
  'redeemSignInLink',
  'requestSignInLink',
  'confirmAccountAddress',
  'beginPasskeySignIn',
  'signInWithPasskey',
  'beginPasskeyByLink',
  'redeemLinkWithPasskey',
];

/** Operations that every token may call. They concern the caller alone, or the handler checks the right that body or query require. */
const AUTHENTICATED = [
  'getAccountInformation',
  'editAccountInformation',
  'acceptInvitationByLink',
  'listAccountSessions',
  'deleteAccountSession',
  'editAccountPassword',
  'getAccountAddress',
  'editAccountAddress',
  'deleteAccountAddressChange',
  'listAccountPasskeys',
  'beginAccountPasskey',
  'createAccountPasskey',
  'editAccountPasskey',
  'deleteAccountPasskey',
  'getUserSignUp',
  'createUserSignUp',
  'listAvailableContainerRegistry',
  'listAvailableHelmRepository',
  'listOrganization',
  'createOrganization',
  'getMemberInvitation',
  'postAcceptInviteMember',
  'getGitProviderAccount',
  'getGithubRepositories',
  'getGithubRepositoryBranches',
  'getGitlabRepositories',
  'getGitlabRepositoryBranches',
  'getBitbucketRepositories',
  'getBitbucketRepositoryBranches',
  'getDefaultClusterAdvancedSettings',
  ...KINDS.filter(({ capabilities }) => capabilities?.advancedSettings).map(
    ({ tag }) => `getDefault${tag}AdvancedSettings`,
  ),
  'listTerraformVersions',
  'listVariables',
  'createVariable',
  'importEnvironmentVariables',
  'getDeploymentStatusByDeploymentRequestId',
  'getAccountReferral',
  'postAccountRewardClaim',
  'listClusterOperatorFleet',
  ...cloudProviderRoutes.map(({ id }) => id),
  'createAlertReceiver',
  'validateNewAlertReceiver',
  'createAlertRule',
  'checkBlueprintUpdate',
  'previewBlueprintUpdate',
  'deployBlueprint',
  'updateBlueprint',
];

/** Operations on something that the world does not have: 404 for every caller. */
const ABSENT = [
  'getClusterAnalysis',
  'listClusterAnalysisLogs',
  'getOrganizationEnterpriseConnection',
  'getClusterPlatformBinding',
  'getOrganizationInvoice',
  'getOrganizationInvoicePDF',
  'getBlueprintCatalogServiceReadme',
];

/** Operations that ask another system, which the world does not have: 502 for a caller who has the right. */
const ELSEWHERE = [
  'listUpstreamSecretsFromSecretProvider',
  'getArgoCdAppManifest',
  'planContainerDeployment',
  'planEnvironmentDeployment',
];

/** Operations that need more of the query than `ask` sends, or another runtime than the world has: 400 for a caller who has the right. */
const INCOMPLETE = [
  'getContainerVersions',
  'getHelmCharts',
  'getOrganizationGithubRepositoryBranches',
  'getOrganizationGitlabRepositoryBranches',
  'getOrganizationBitbucketRepositoryBranches',
  'getClusterLogs',
  'getClusterMetrics',
  'getClusterKubernetesEvents',
  'getClusterKubeconfig',
  'getClusterToken',
  'getInstallationHelmValues',
  'listEksAnywhereCommits',
  'getEksAnywhereClusterJwt',
  'getClusterOperatorBootstrap',
  'getBlueprintCatalogServiceManifest',
];

/** Operations on something that is not ready in the world: 409 for a caller who has the right. */
const UNFINISHED = ['downloadDatabaseBackup'];

/** Deletions that take the target from the body or query. */
const QUERIED = ['deleteMember', 'deleteArgoCdDestinationClusterMapping'];

/** Returns the statuses of an allowed `ask`. A read succeeds; a write is refused for its precondition or for what it lacks. */
function allowedStatuses({ id, method, body }: Route): number[] {
  if (ABSENT.includes(id)) return [404];
  if (ELSEWHERE.includes(id)) return [502];
  if (INCOMPLETE.includes(id)) return [400];
  if (UNFINISHED.includes(id)) return [409];
  if (method === 'GET') return [200];
  if (method === 'POST') return [400];
  return body || QUERIED.includes(id) ? [400, 412] : [412];
}

const app = useApp();
const routes = allRoutes();
let world: World;
let scopes: Record<string, Actor>;
beforeAll(async () => {
  world = await makeWorld(app);
  scopes = Object.fromEntries(
    await Promise.all(SCOPES.map(async (scope) => [scope, await world.admin.withScope(scope as 'READ')])),
  );
});

/** Calls an operation so that nothing changes even if access is allowed: access is checked before what is refused here. */
function ask(caller: Caller, route: Route): Promise<Answer> {
  const headers: Record<string, string> =
    route.method === 'POST' ? { 'idempotency-key': 'x'.repeat(300) } : { 'if-match': '"never"' };
  const body = route.body && !route.bodyContentType ? {} : undefined;
  return caller.call(route.method, world.pathOf(route), body, route.method === 'GET' ? {} : headers);
}

const guarded = routes.filter((route) => route.action in ACTIONS);
const levelOf = (route: Route): Level => ACTIONS[route.action as keyof typeof ACTIONS];
const nameOf = (route: Route) => `${route.method} ${route.path}`;

describe('every endpoint', () => {
  test('has a path in the world of the suites', () => {
    for (const route of routes) expect(world.pathOf(route)).not.toContain('{');
  });

  test('takes an action, but those that are listed here', () => {
    const with_ = (action: string) => routes.filter((route) => route.action === action).map((route) => route.id);
    expect(with_('public').sort()).toEqual([...PUBLIC].sort());
    expect(with_('authenticated').sort()).toEqual([...AUTHENTICATED].sort());
    expect(guarded.filter((route) => !route.target).map(nameOf)).toEqual([]);
  });

  test('answers 401 without credentials and with a token that is none', async () => {
    const fake = { authorization: `Token qd_${newId().replaceAll('-', '')}_${'x'.repeat(43)}` };
    for (const route of routes.filter((one) => one.action !== 'public'))
      for (const headers of [{}, fake, { authorization: 'Token nonsense' }, { authorization: 'Bearer nonsense' }]) {
        const answer = await app.anonymous(route.method, world.pathOf(route), undefined, headers);
        expect(answer.status, `${nameOf(route)} ${JSON.stringify(answer.body)}`).toBe(401);
      }
  });

  test('answers 404 to the administrator of another organization, and tells nothing', async () => {
    for (const route of guarded) {
      const answer = await ask(world.stranger, route);
      expect(answer.status, `${nameOf(route)} ${JSON.stringify(answer.body)}`).toBe(404);
      expect(answer.body.message, nameOf(route)).toMatch(/^[\w ]+ not found\.$/);
    }
  });

  test.each(SCOPES)('answers 403 to a token of scope %s exactly where its action takes more', async (scope) => {
    const wrong: string[] = [];
    for (const route of guarded) {
      const { status, body } = await ask(scopes[scope]!, route);
      const expected = includes(scope, levelOf(route)) ? allowedStatuses(route) : [403];
      if (!expected.includes(status)) wrong.push(`${nameOf(route)} (${route.action}): ${status} ${body?.message}`);
    }
    expect(wrong).toEqual([]);
  });

  test('compares If-Match for a token whose rights differ from place to place, too', async () => {
    const body = { name: newId(), opa_policy: 'package p\nallow := true' };
    const { token } = ok(await world.admin.post(`/organization/${world.organizationId}/policyApiToken`, body), 201);
    const limited = app.session(token);
    const wrong: string[] = [];
    for (const route of guarded.filter(({ method }) => !['GET', 'POST'].includes(method))) {
      const { status, body } = await ask(limited, route);
      // Some operations are closed to every policy, whatever its text.
      if (![...allowedStatuses(route), 403].includes(status))
        wrong.push(`${nameOf(route)}: ${status} ${body?.message}`);
    }
    expect(wrong).toEqual([]);
  });

  test.each(SCOPES)('that only wants a caller takes a token of scope %s', async (scope) => {
    for (const route of routes.filter((one) => one.action === 'authenticated')) {
      const { status } = await ask(scopes[scope]!, route);
      expect([401, 403, 500], nameOf(route)).not.toContain(status);
    }
  });
});

describe('what a body or a query names', () => {
  const variable = { key: 'A_KEY', value: 'v', is_secret: false };
  const cells: [id: string, needed: Level, url: (w: World) => string, body?: (w: World) => object][] = [
    ['createEnvironment', 'WRITE', (w) => `/project/${w.projectId}/environment`, () => ({ name: newId() })],
    ['listVariables', 'READ', (w) => `/variable?parent_id=${w.projectId}&scope=PROJECT`],
    [
      'createVariable',
      'WRITE',
      () => '/variable',
      (w) => ({
        ...variable,
        key: `K_${newId().slice(0, 8)}`,
        variable_scope: 'PROJECT',
        variable_parent_id: w.projectId,
      }),
    ],
    [
      'importEnvironmentVariables',
      'WRITE',
      (w) => `/variable/import?service_id=${w.applicationId}&service_type=APPLICATION`,
      () => ({ overwrite: true, vars: [{ name: 'IMPORTED', value: 'v', scope: 'APPLICATION', is_secret: false }] }),
    ],
    [
      'createVariableOverride',
      'WRITE',
      (w) =>
        w
          .pathOf({ method: 'POST', path: '/project/{projectId}/environmentVariable/{environmentVariableId}' })
          .replace(/.*\//, '/variable/')
          .concat('/override'),
      (w) => ({ value: 'o', override_scope: 'ENVIRONMENT', override_parent_id: w.environmentId }),
    ],
    [
      'createVariableAlias',
      'WRITE',
      (w) =>
        w
          .pathOf({ method: 'POST', path: '/project/{projectId}/environmentVariable/{environmentVariableId}' })
          .replace(/.*\//, '/variable/')
          .concat('/alias'),
      (w) => ({ key: `A_${newId().slice(0, 8)}`, alias_scope: 'ENVIRONMENT', alias_parent_id: w.environmentId }),
    ],
  ];

  test.each(cells)('by %s takes the level %s there', async (id, needed, url, body) => {
    const { method } = routes.find((route) => route.id === id)!;
    for (const scope of SCOPES) {
      const answer = await scopes[scope]!.call(method, url(world), body?.(world));
      const right = includes(scope, needed) ? [200, 201, 409] : [403];
      expect(right, `${scope}: ${JSON.stringify(answer.body)}`).toContain(answer.status);
    }
    const foreign = await world.stranger.call(method, url(world), body?.(world));
    expect([400, 404], JSON.stringify(foreign.body)).toContain(foreign.status);
  });
});

test('docs/access.md is the table of actions', () => {
  const written = readFileSync(path.join(import.meta.dirname, '../../docs/access.md'), 'utf8');
  expect(written, 'docs/access.md is not what the actions say: run `npm run gen`').toBe(accessTable());
});
