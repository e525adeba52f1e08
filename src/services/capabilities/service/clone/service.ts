import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Call } from '#platform/http/route.ts';
import { audit } from '#platform/events/audit.ts';
import { listStages } from '#resources/deployment-stage/index.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { copyServices } from '#services/capabilities/service/clone/copy.ts';
import type { CloneServiceInput } from '#services/capabilities/service/clone/schema.ts';
import type { Kind } from '#services/kind.ts';
import { findDefaultStage, findServiceById } from '#services/service/queries.ts';
import {
  placeOfService,
  refuseDeleting,
  refuseTakenName,
  toRecordedView,
  toServiceView,
} from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/**
 * Clones a service into its own or another environment of the organization. Throws 409 if that environment has a service of that name, or one of
 * both runs the code of a fork.
 */
export async function cloneService(call: Call<ServiceTarget>, kind: Kind, input: CloneServiceInput) {
  const service = call.target;
  refuseDeleting(service);
  const { organizationId } = service;
  const environment = await findEnvironment(call, organizationId, input.environment_id);
  const id = newId();
  const name = input.name.trim();
  const stageId = await findStage(call, kind, service, environment.id);
  await refuseTakenName(name, () =>
    copyServices(call, call.require, {
      from: service,
      to: environment,
      services: [{ kind, row: service, id, name, stageId }],
      whole: false,
    }),
  );
  const row = await findServiceById(call.db, [organizationId], id);
  if (!row) throw internal(`Service ${id} is gone within its own transaction.`);
  const view = toServiceView(call, kind, row);
  await audit(call, {
    organizationId,
    type: 'CLONE',
    ...placeOfService(row),
    after: { ...toRecordedView(call, kind, row), cloned_from: service.id },
  });
  return view;
}

/** Finds and locks the environment that a body names. Throws 403 unless the caller may create services there. */
async function findEnvironment(call: Call<ServiceTarget>, organizationId: string, id: string) {
  const environment = await environmentTarget.find(call.db, id, [organizationId], { lock: true });
  if (!environment) throw invalidField('environment_id', 'names no environment of this organization');
  call.require('service.create', environment);
  if (environment.deleting)
    throw conflict(`Environment ${environment.name} is being deleted: nothing can be created in it.`);
  return environment;
}

/**
 * Finds the stage of the copy. In the same environment it is the same stage, in another one that of the same name, else the kind's default.
 */
async function findStage(call: Call, kind: Kind, service: ServiceTarget, environmentId: string): Promise<string> {
  if (environmentId === service.environmentId) return service.stage_id;
  const scope = { organizationId: service.organizationId };
  const present = (await listStages(call.db, scope, service.environmentId)).find(({ id }) => id === service.stage_id);
  const same = (await listStages(call.db, scope, environmentId)).find(({ name }) => name === present?.name);
  return same?.id ?? (await findDefaultStage(call.db, scope, environmentId, kind.defaultStage)).id;
}
