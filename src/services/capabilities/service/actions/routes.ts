import { hasFact } from '#kernel/kinds.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { settleService } from '#services/capabilities/service/actions/settle.ts';
import { deleteService } from '#services/capabilities/service/actions/delete.ts';
import { actOnService, statusOfService, type Trigger } from '#services/capabilities/service/actions/request.ts';
import { chooseForService } from '#services/capabilities/service/actions/choices.ts';
import { refuseDeleting } from '#services/service/service.ts';
import { cancellingTarget, type ServiceTarget } from '#services/service/target.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';

const ACTIONS: {
  trigger: Trigger;
  segment: string;
  id: string;
  summary: string;
  action: 'service.deploy' | 'uninstall';
}[] = [
  {
    trigger: 'DEPLOY',
    segment: 'deploy',
    id: 'deploy',
    summary: 'Deploy the present configuration',
    action: 'service.deploy',
  },
  {
    trigger: 'REDEPLOY',
    segment: 'redeploy',
    id: 'redeploy',
    summary: 'Deploy the present configuration with the commit of the last release',
    action: 'service.deploy',
  },
  { trigger: 'STOP', segment: 'stop', id: 'stop', summary: 'Stop', action: 'service.deploy' },
  {
    trigger: 'RESTART',
    segment: 'restart-service',
    id: 'reboot',
    summary: 'Start new processes of the last release',
    action: 'service.deploy',
  },
  {
    trigger: 'UNINSTALL',
    segment: 'uninstall',
    id: 'uninstall',
    summary: 'Remove what runs and keep the configuration',
    action: 'uninstall',
  },
];

const deploys = (trigger: Trigger): boolean => trigger === 'DEPLOY' || trigger === 'REDEPLOY';

async function deployService(call: Call<ServiceTarget>, kind: Kind, trigger: Trigger) {
  const { target } = call;
  refuseDeleting(target);
  const choice = await chooseForService(call, kind, target, { ...call.query, ...(call.body as object | undefined) });
  if (choice.nothing) return statusOfService(call, target);
  const choices = new Map([[target.id, choice]]);
  return actOnService(call, target, choice.event ? 'RUN' : trigger, { choices });
}

function requestAction(call: Call<ServiceTarget>, kind: Kind, trigger: Trigger) {
  if (deploys(trigger)) return deployService(call, kind, trigger);
  const choices =
    trigger === 'UNINSTALL' && kind.removal ? new Map([[call.target.id, kind.removal.choose(call.query)]]) : undefined;
  return actOnService(call, call.target, trigger, { choices });
}

async function removeService(call: Call<ServiceTarget>, kind: Kind): Promise<void> {
  const { keep = false, ...choice } = kind.removal?.choose(call.query) ?? {};
  const options = { bestEffort: call.query.skipReconcile === true, choices: new Map([[call.target.id, choice]]) };
  if (keep) await actOnService(call, call.target, 'UNINSTALL', options);
  else await deleteService(call, call.target, options);
}

/** Actions on a service (deploy, redeploy, stop, restart, uninstall, delete) and its status. All but the deletion take `?wait=`. */
export function actionRoutes(kind: Kind): Route[] {
  const { target } = holderOf(kind);
  const one = `/${kind.path}/{${paramOf(kind)}}`;
  const has = (trigger: Trigger): boolean =>
    !(trigger === 'RESTART' && kind.capabilities?.restart === false) &&
    !(trigger === 'STOP' && kind.capabilities?.stop === false);
  const requests = ACTIONS.filter(({ trigger }) => has(trigger)).map(({ trigger, segment, id, summary, action }) =>
    defineRoute({
      id: `${id}${kind.tag}`,
      method: 'POST',
      path: `${one}/${segment}`,
      tag: `${kind.tag} Actions`,
      summary: `${summary} of a service of kind ${kind.path}`,
      description: 'Answers with the new state; the work goes on, behind what runs in the environment already.',
      target: trigger === 'UNINSTALL' ? cancellingTarget(target) : target,
      action:
        action === 'uninstall' ? (hasFact(kind.kind, 'guarded') ? 'workload.delete' : 'service.uninstall') : action,
      ...(trigger === 'DEPLOY' && kind.deploy?.body ? { body: kind.deploy.body, optionalBody: true } : {}),
      ...(deploys(trigger) && kind.deploy?.query ? { query: kind.deploy.query } : {}),
      ...(trigger === 'UNINSTALL' ? { body: Type.Object({}), optionalBody: true } : {}),
      ...(trigger === 'UNINSTALL' && kind.removal ? { query: kind.removal.uninstallQuery } : {}),
      answer: { status: 200, body: Status },
      errors: [409],
      handler: (call) => requestAction(call, kind, trigger),
      settle: (call, answer, seconds) => settleService(call, call.target, answer, seconds, call.signal),
    }),
  );
  return [
    ...requests,
    defineRoute({
      id: `delete${kind.tag}`,
      method: 'DELETE',
      path: one,
      tag: `${kind.tag} Main Calls`,
      summary: `Delete a service of kind ${kind.path}`,
      description: 'Answers at once; the teardown goes on, and GET shows it until the service is gone.',
      target: cancellingTarget(target),
      action: hasFact(kind.kind, 'guarded') ? 'workload.delete' : 'service.delete',
      query: Type.Object({
        ...kind.removal?.deleteQuery.properties,
        skipReconcile: Type.Optional(
          Type.Boolean({ default: false, description: 'Tear down best-effort: what is absent already is no error.' }),
        ),
      }),
      answer: { status: 204, body: null },
      handler: (call) => removeService(call, kind),
    }),
    defineRoute({
      id: `get${kind.tag}Status`,
      method: 'GET',
      path: `${one}/status`,
      tag: `${kind.tag} Main Calls`,
      summary: `Get the status of a service of kind ${kind.path}`,
      description: `Answers state, deployment status and finished steps of the ${kind.path}. READY means that it was never deployed.`,
      target,
      action: 'service.read',
      answer: { status: 200, body: Status },
      handler: (call) => statusOfService(call, call.target),
      settle: (call, answer, seconds) => settleService(call, call.target, answer, seconds, call.signal),
    }),
  ];
}
