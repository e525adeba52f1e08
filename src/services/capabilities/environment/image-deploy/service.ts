import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Call } from '#platform/http/route.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import type { OrganizationTarget } from '#resources/organization/index.ts';
import { actOnEnvironment } from '#services/capabilities/environment/actions/request.ts';
import { statusOfService } from '#services/capabilities/service/actions/request.ts';
import { cloneEnvironment } from '#services/capabilities/environment/clone/index.ts';
import { listServicesWithFlag } from '#services/capabilities/environment/image-deploy/queries.ts';
import type { Kind } from '#services/kind.ts';
import { listAllServicesByEnvironment, type ServiceRow } from '#services/service/queries.ts';
import { changeSpec } from '#services/service/service.ts';

/** A version of an image that is there now. */
export interface NewImage {
  image_name?: string;
  tag?: string;
}

type OrganizationCall = Call<OrganizationTarget>;

/** Environments with services that run another version of the image and follow it, with those services. */
async function listFollowers(
  call: OrganizationCall,
  kind: Kind,
  { image_name, tag }: NewImage,
  flag: 'auto_deploy' | 'auto_preview',
) {
  if (image_name === undefined) throw invalidField('image_name', 'is required');
  if (tag === undefined) throw invalidField('tag', 'is required');
  const scope = { organizationId: call.target.organizationId };
  const rows = await listServicesWithFlag(call.db, scope, kind.kind, flag);
  const followers = rows.filter((row) => {
    const image = kind.capabilities!.image!.of(row.spec);
    return image?.name === image_name && image.tag !== tag;
  });
  if (followers.length === 0)
    throw badRequest(
      `No service of kind ${kind.path} with ${flag} runs another tag than ${tag} of the image ${image_name} (image_name, tag).`,
    );
  return { tag, groups: [...Map.groupBy(followers, (row) => row.environment_id)] };
}

async function findEnvironment(call: OrganizationCall, id: string): Promise<EnvironmentTarget> {
  const environment = await environmentTarget.find(call.db, id, [call.target.organizationId], { lock: true });
  if (!environment) throw badRequest('An environment was deleted in the meantime: ask again.');
  return environment;
}

/**
 * Makes a tag the configured one wherever services run the image and follow it (`auto_deploy`), and deploys them: one request an environment.
 * Answers the status of the first. 400 where none does.
 */
export async function deployFollowers(call: OrganizationCall, kind: Kind, image: NewImage) {
  const { tag, groups } = await listFollowers(call, kind, image, 'auto_deploy');
  for (const [environmentId, rows] of groups) {
    const environment = await findEnvironment(call, environmentId);
    call.require('service.deploy', environment);
    for (const row of rows) await changeSpec(call, kind, row, kind.capabilities!.image!.withTag(row.spec, tag));
    const ids = rows.map((row) => row.id);
    await actOnEnvironment(call, environment, 'DEPLOY', ids, { automatic: true });
  }
  return statusOf(call, groups[0]![1][0]!);
}

/**
 * Makes a preview of each environment whose services run the image and want that (`auto_preview`): a clone with the tag, deployed. That of a
 * PRODUCTION environment keeps its mode, as it has its secrets. Answers the status of the first. 400 where none does.
 */
export async function previewFollowers(call: OrganizationCall, kinds: Kind[], kind: Kind, image: NewImage) {
  const { tag, groups } = await listFollowers(call, kind, image, 'auto_preview');
  let first: ServiceRow | undefined;
  for (const [environmentId, rows] of groups) {
    const target = await findEnvironment(call, environmentId);
    const name = `${target.name} preview ${tag}`;
    const mode = target.mode === 'PRODUCTION' ? 'PRODUCTION' : 'PREVIEW';
    const clone = await cloneEnvironment({ ...call, target }, kinds, { name, mode }, { isPreview: true });
    const environment = await findEnvironment(call, clone.id);
    const names = new Set(rows.map((row) => row.name));
    for (const row of await listAllServicesByEnvironment(call.db, call.target, clone.id).execute()) {
      if (row.kind !== kind.kind || !names.has(row.name)) continue;
      await changeSpec(call, kind, row, kind.capabilities!.image!.withTag(row.spec, tag));
      first ??= row;
    }
    await actOnEnvironment(call, environment, 'DEPLOY', null, { automatic: true });
  }
  return statusOf(call, first!);
}

function statusOf(call: OrganizationCall, row: ServiceRow) {
  return statusOfService(call, { id: row.id, organizationId: row.organization_id });
}
