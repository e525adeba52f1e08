import { hasFact, kindsWith } from '#kernel/kinds.ts';
import { invalidField } from '#kernel/errors.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { named, Type, Uuid } from '#platform/http/schema.ts';
import { cancelEnvironment } from '#deployments/index.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { chooseForEnvironment, type ChosenService } from '#services/capabilities/environment/actions/choices.ts';
import { deleteEnvironment, requireRemoval } from '#services/capabilities/environment/actions/delete.ts';
import { actOnEnvironment, statusOfEnvironment } from '#services/capabilities/environment/actions/request.ts';
import { settleEnvironment } from '#services/capabilities/environment/actions/settle.ts';
import * as queries from '#services/capabilities/service/actions/queries.ts';
import {
  placeOfEnvironment,
  refuseObserved,
  submit,
  type Trigger,
} from '#services/capabilities/service/actions/request.ts';
import { EnvironmentStatus } from '#services/capabilities/environment/status/schema.ts';
import { cleanFailed } from '#services/capabilities/service/executions/index.ts';
import type { Kind } from '#services/kind.ts';

const Ids = Type.Optional(Type.Array(Uuid, { maxItems: 1000 }));
const SelectedServices = named(
  'SelectedServices',
  Type.Object(Object.fromEntries(kindsWith('linked').map((kind) => [`${kind.toLowerCase()}_ids`, Ids]))),
);

/** Lists of services, one for each kind that says what its entries are. */
const deploySelected = (kinds: Kind[]) =>
  named(
    'DeploySelectedServices',
    Type.Object(
      Object.fromEntries(
        kinds.flatMap(({ deploy }) =>
          deploy?.entry ? [[deploy.group, Type.Optional(Type.Array(deploy.entry, { maxItems: 1000 }))] as const] : [],
        ),
      ),
    ),
  );
const SkipReconcile = Type.Object({ skipReconcile: Type.Optional(Type.Boolean({ default: false })) });

/** Lists of a body, by their names: ids of services, or entries with options. */
type Lists<Entry> = Record<string, Entry[] | undefined>;
type EnvironmentCall<Entry = string> = Call<
  EnvironmentTarget,
  Record<string, string>,
  Record<string, unknown>,
  Lists<Entry>
>;

const at = (environment: EnvironmentTarget) => ({
  organizationId: environment.organizationId,
  projectId: environment.projectId,
  mode: environment.mode,
});

/** Ids that a body selects, whatever their kind. */
const selected = (body: Record<string, string[] | undefined>): string[] => [
  ...new Set(Object.keys(SelectedServices.properties).flatMap((kind) => body[kind] ?? [])),
];

async function removeSelected(call: EnvironmentCall, trigger: 'DELETE' | 'UNINSTALL', bestEffort: boolean) {
  const ids = selected(call.body);
  const rows = await queries.listForSnapshot(call.db, call.target, call.target.id, ids);
  refuseObserved(rows);
  requireRemoval(
    call.require,
    rows.map((row) => row.kind),
    at(call.target),
  );
  if (trigger === 'DELETE') {
    const gone = await queries.listNeverApplied(call.db, call.target, ids);
    const left = rows.filter((row) => !gone.includes(row.id)).map((row) => row.id);
    await queries.markServicesDeleting(call.db, call.target, left);
    let requested: string | undefined;
    if (left.length > 0 || rows.length !== ids.length)
      requested = await submit(
        call,
        placeOfEnvironment(call.target),
        'DELETE',
        rows.length === ids.length ? left : ids,
        {
          bestEffort,
        },
      );
    await queries.deleteServices(call.db, call.target, gone);
    return { ...(await statusOfEnvironment(call, call.target)), requested };
  }
  return actOnEnvironment(call, call.target, 'UNINSTALL', ids, { bestEffort });
}

/** Deploys services, each as its entry says; what is only run goes into requests of its own, one for each thing to run. */
async function deployChosen(call: EnvironmentCall<ChosenService>, kinds: Kind[]) {
  const choices = await chooseForEnvironment(call, kinds, call.target, call.body);
  const chosen = [...choices].filter(([, choice]) => !choice.nothing);
  const byEvent = Map.groupBy(chosen, ([, { event }]) => event);
  let answer: unknown;
  for (const [event, entries] of byEvent) {
    const ids = entries.map(([id]) => id);
    answer = await actOnEnvironment(call, call.target, event ? 'RUN' : 'DEPLOY', ids, { choices });
  }
  return answer ?? actOnEnvironment(call, call.target, 'DEPLOY', [], {});
}

const environmentAction = (trigger: Trigger, segment: string, id: string, summary: string): Route =>
  defineRoute({
    id,
    method: 'POST',
    path: `/environment/{environmentId}/${segment}`,
    tag: 'Environment Actions',
    summary,
    description: 'Answers with the new state; the work goes on, stage by stage.',
    target: environmentTarget,
    action: trigger === 'UNINSTALL' ? 'environment.uninstall' : 'environment.deploy',
    answer: { status: 200, body: EnvironmentStatus },
    errors: [409],
    handler: async (call) => {
      if (trigger === 'UNINSTALL') {
        const rows = await queries.listForSnapshot(call.db, call.target, call.target.id, null);
        requireRemoval(
          call.require,
          rows.map((row) => row.kind),
          at(call.target),
        );
      }
      return actOnEnvironment(call, call.target, trigger, null);
    },
    settle: settleEnvironment,
  });

const selectionAction = (
  id: string,
  segment: string,
  summary: string,
  action: 'environment.deploy' | 'environment.uninstall' | 'environment.delete',
  run: (call: EnvironmentCall) => Promise<unknown>,
  skips = false,
): Route =>
  defineRoute({
    id,
    method: 'POST',
    path: `/environment/{environmentId}/service/${segment}`,
    tag: 'Environment Actions',
    summary,
    description: `Applies to the services that the body names${skips ? ', and tears down what runs of them first' : ''}. Answers with the new state of the environment; the work goes on.`,
    target: environmentTarget,
    action,
    body: SelectedServices,
    ...(skips ? { query: SkipReconcile } : {}),
    answer: { status: 200, body: EnvironmentStatus },
    errors: [409],
    handler: (call) => run(call as EnvironmentCall),
    settle: settleEnvironment,
  });

export const environmentActionRoutes = (kinds: Kind[]): Route[] => [
  environmentAction(
    'DEPLOY',
    'deploy',
    'deployEnvironment',
    'Deploy all services of an environment to their latest version',
  ),
  environmentAction(
    'REDEPLOY',
    'redeploy',
    'redeployEnvironment',
    'Deploy all services of an environment with the versions of the last deployment',
  ),
  environmentAction('STOP', 'stop', 'stopEnvironment', 'Stop all services of an environment'),
  environmentAction(
    'UNINSTALL',
    'uninstall',
    'uninstallEnvironment',
    'Remove what runs of an environment and keep its configuration',
  ),
  selectionAction('rebootServices', 'restart-service', 'Restart services', 'environment.deploy', (call) =>
    actOnEnvironment(call, call.target, 'RESTART', selected(call.body)),
  ),
  selectionAction('stopSelectedServices', 'stop', 'Stop services', 'environment.deploy', (call) =>
    actOnEnvironment(call, call.target, 'STOP', selected(call.body)),
  ),
  selectionAction(
    'uninstallSelectedServices',
    'uninstall',
    'Remove what runs of services and keep their configuration',
    'environment.uninstall',
    (call) => removeSelected(call, 'UNINSTALL', false),
  ),
  selectionAction(
    'deleteSelectedServices',
    'delete',
    'Delete services',
    'environment.delete',
    (call) => removeSelected(call, 'DELETE', call.query.skipReconcile === true),
    true,
  ),
  defineRoute({
    id: 'deployAllServices',
    method: 'POST',
    path: '/environment/{environmentId}/service/deploy',
    tag: 'Environment Actions',
    summary: 'Deploy services, each in its configured or a named version',
    description: 'Services that the body leaves out are not touched. The new state is stored before the call answers.',
    target: environmentTarget,
    action: 'environment.deploy',
    body: deploySelected(kinds),
    answer: { status: 200, body: EnvironmentStatus },
    errors: [409],
    handler: (call) => deployChosen(call as EnvironmentCall<ChosenService>, kinds),
    settle: settleEnvironment,
  }),
  defineRoute({
    id: 'cancelEnvironmentDeployment',
    method: 'POST',
    path: '/environment/{environmentId}/cancelDeployment',
    tag: 'Environment Actions',
    summary: 'Cancel what is under way in an environment',
    description: 'What runs ends at its next safe point, or at once with `force_cancel`. 409 if nothing is under way.',
    target: environmentTarget,
    action: 'environment.deploy',
    body: named(
      'CancelRequest',
      Type.Object({
        force_cancel: Type.Optional(
          Type.Boolean({ default: false, description: 'End what runs without waiting for a safe point.' }),
        ),
      }),
    ),
    optionalBody: true,
    answer: { status: 200, body: EnvironmentStatus },
    errors: [409],
    handler: async (call) => {
      await cancelEnvironment(call, call.target, call.body.force_cancel ?? false);
      return statusOfEnvironment(call, call.target);
    },
    settle: settleEnvironment,
  }),
  defineRoute({
    id: 'cleanFailedJobs',
    method: 'POST',
    path: '/environment/{environmentId}/cleanFailedJobs',
    tag: 'Environment Actions',
    summary: 'Remove what failed executions of jobs left behind',
    description: 'Answers the names of what is removed; the worker that reaches the cluster does it.',
    target: environmentTarget,
    action: 'environment.deploy',
    body: named('CleanFailedJobsRequest', Type.Object({ job_ids: Ids })),
    optionalBody: true,
    answer: {
      status: 200,
      body: named(
        'CleanFailedJobs',
        Type.Object({ clean_job_ids: Type.Array(Uuid), clean_kubernetes_jobs: Type.Array(Type.String()) }),
      ),
    },
    handler: async (call) => {
      const rows = await queries.listForSnapshot(call.db, call.target, call.target.id, call.body.job_ids ?? null);
      const jobs = rows.filter((row) => hasFact(row.kind, 'scheduled')).map((row) => row.id);
      for (const [index, id] of (call.body.job_ids ?? []).entries())
        if (!jobs.includes(id)) throw invalidField(`job_ids[${index}]`, 'names no job of this environment');
      return { clean_job_ids: jobs, clean_kubernetes_jobs: await cleanFailed(call, call.target.organizationId, jobs) };
    },
  }),
  defineRoute({
    id: 'deleteEnvironment',
    method: 'DELETE',
    path: '/environment/{environmentId}',
    tag: 'Environment Main Calls',
    summary: 'Delete an environment with all that is in it',
    description: 'Answers at once; what runs is torn down, then the environment is gone.',
    target: environmentTarget,
    action: 'environment.delete',
    query: SkipReconcile,
    answer: { status: 204, body: null },
    handler: async (call) =>
      void (await deleteEnvironment(call, call.target, call.require, call.query.skipReconcile ?? false)),
  }),
];
