import { hasFact } from '#kernel/kinds.ts';
import type { Route } from '#platform/http/route.ts';
import { Slots } from '#platform/http/slots.ts';
import { environmentActionRoutes } from '#services/capabilities/environment/actions/routes.ts';
import { queueRoutes } from '#services/capabilities/environment/actions/queue-routes.ts';
import { checkRoutes } from '#services/capabilities/environment/checks/index.ts';
import { environmentCloneRoutes } from '#services/capabilities/environment/clone/index.ts';
import { environmentPlanRoutes } from '#services/capabilities/environment/deployment-plan/index.ts';
import { terraformExportRoutes } from '#services/capabilities/environment/export/index.ts';
import { buildReportRoutes } from '#services/capabilities/environment/history/build-report.ts';
import { environmentHistoryRoutes } from '#services/capabilities/environment/history/routes.ts';
import { imageDeployRoutes } from '#services/capabilities/environment/image-deploy/index.ts';
import { environmentLinkRoutes } from '#services/capabilities/environment/links/index.ts';
import { environmentLogRoutes } from '#services/capabilities/environment/logs/routes.ts';
import { environmentRollbackRoutes } from '#services/capabilities/environment/rollback/index.ts';
import { kindStatusRoutes, statusRoutes } from '#services/capabilities/environment/status/routes.ts';
import { actionRoutes } from '#services/capabilities/service/actions/routes.ts';
import { advancedSettingsRoutes, networkRoutes } from '#services/capabilities/service/advanced-settings/index.ts';
import { cloneRoutes } from '#services/capabilities/service/clone/index.ts';
import { commitRoutes } from '#services/capabilities/service/commits/index.ts';
import { customDomainRoutes } from '#services/capabilities/service/custom-domains/index.ts';
import { planRoutes } from '#services/capabilities/service/deployment-plan/index.ts';
import { deploymentRestrictionRoutes } from '#services/capabilities/service/deployment-restrictions/index.ts';
import { executionRoutes } from '#services/capabilities/service/executions/index.ts';
import { folderRoutes } from '#services/capabilities/service/folder/index.ts';
import { gitWebhookRoutes } from '#services/capabilities/service/git-webhook/index.ts';
import { kindHistoryRoutes, serviceQueueRoutes } from '#services/capabilities/service/history/routes.ts';
import { ingressRoutes, linkRoutes } from '#services/capabilities/service/links/index.ts';
import { serviceLogRoutes } from '#services/capabilities/service/logs/routes.ts';
import { rollbackRoutes } from '#services/capabilities/service/rollback/index.ts';
import { serviceStageRoutes } from '#services/capabilities/service/status/stage-route.ts';
import { mainVariableRoutes, secretRoutes, variableRoutes } from '#services/capabilities/variables/index.ts';
import { environmentHolder, projectHolder, type Holder } from '#services/service/holder.ts';
import { holderOf, type Kind } from '#services/kind.ts';
import { KINDS, READ_KINDS } from '#services/kinds/index.ts';
import { registryCallRoutes, tagTasks } from '#services/moved-tags/index.ts';
import { forkPreviewRoutes } from '#services/previews/routes.ts';
import { gitPushRoutes, pushTasks } from '#services/pushes/index.ts';
import { lifecycleTemplateRoutes } from '#services/lifecycle-template/index.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import { serviceListRoutes } from '#services/service/list-routes.ts';
import { serviceRoutes } from '#services/service/routes.ts';

export { KINDS, READ_KINDS };

/** Deployments of all kinds, for the engine. */
export const DEPLOYMENTS_BY_KIND = Object.fromEntries(KINDS.map((kind) => [kind.kind, kind.deployment]));

/** Hooks of all kinds, for the engine: the steps of deployments that need the database. */
export const HOOKS_BY_KIND = Object.fromEntries(KINDS.map((kind) => [kind.kind, kind.hooks]));

/** Recurring tasks of what services follow: branches of repositories, and tags of images. */
export const FOLLOWING_TASKS = [...pushTasks(KINDS), ...tagTasks(KINDS)];

/**
 * Holders with endpoints for variables. Databases (docs/contributing/rules.md 29) and read-only kinds have no scope of variables; variables
 * of kinds that name their operations are reached through `/variable` alone.
 */
const VARIABLE_HOLDERS: Holder[] = [
  projectHolder,
  environmentHolder,
  ...KINDS.filter(({ kind, operations }) => hasFact(kind, 'variables') && !operations).map(holderOf),
];

/** Joins kinds and capabilities: every endpoint of every kind of service. */
export function mountServices(needs: ServiceNeeds): Route[] {
  const followedLogs = new Slots({ plural: 'followed logs', advice: 'close one' });
  const planNeeds = {
    ...needs,
    kinds: DEPLOYMENTS_BY_KIND,
    opens: (kind: string) => HOOKS_BY_KIND[kind]?.open !== undefined,
  };
  const commonOf = (kind: Kind): Route[] => [
    ...serviceRoutes(kind, needs.repositories),
    ...actionRoutes(kind),
    ...folderRoutes(kind, needs),
    ...rollbackRoutes(kind),
    ...planRoutes(kind, planNeeds),
    ...kindStatusRoutes(kind),
    ...kindHistoryRoutes(kind),
    ...serviceLogRoutes(kind, needs, followedLogs),
    ...customDomainRoutes(kind, needs.resolver),
    ...deploymentRestrictionRoutes(kind),
    ...advancedSettingsRoutes(kind),
    ...networkRoutes(kind),
    ...linkRoutes(kind),
    ...commitRoutes(kind, needs.repositories),
    ...cloneRoutes(kind),
    ...executionRoutes(kind),
    ...imageDeployRoutes(kind, KINDS),
  ];
  const ofEachKind = KINDS.flatMap((kind) => chosenOf(kind, commonOf(kind)));
  const ofOneKind = [...KINDS, ...READ_KINDS].flatMap((kind) => kind.routes?.(needs) ?? []);
  return [
    ...ofEachKind,
    ...ofOneKind,
    ...VARIABLE_HOLDERS.flatMap((holder) => [...variableRoutes(holder), ...secretRoutes(holder)]),
    ...mainVariableRoutes,
    ...statusRoutes,
    ...serviceStageRoutes,
    ...environmentHistoryRoutes,
    ...serviceQueueRoutes,
    ...buildReportRoutes,
    ...environmentLogRoutes,
    ...environmentActionRoutes(KINDS),
    ...environmentRollbackRoutes,
    ...environmentPlanRoutes(planNeeds),
    ...queueRoutes,
    ...environmentLinkRoutes(KINDS),
    ...ingressRoutes(KINDS),
    ...environmentCloneRoutes(KINDS),
    ...terraformExportRoutes(KINDS),
    ...serviceListRoutes([...KINDS, ...READ_KINDS]),
    ...checkRoutes(needs),
    ...gitWebhookRoutes(KINDS),
    ...gitPushRoutes(),
    ...registryCallRoutes(KINDS),
    ...forkPreviewRoutes,
    ...lifecycleTemplateRoutes,
  ];
}

/** Returns the common routes that a kind has: all, unless the kind names them. */
function chosenOf({ operations, listTag }: Kind, routes: Route[]): Route[] {
  if (!operations) return routes;
  return routes.filter(({ id }) => operations.includes(id)).map((route) => ({ ...route, tag: listTag }));
}
