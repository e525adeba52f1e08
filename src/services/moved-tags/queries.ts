import { storable } from '#kernel/storable.ts';
import { json } from '#platform/database/json.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { dueTable, inSeconds, type ClaimRequest, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import { DEPLOYS_ITSELF } from '#services/pushes/service-queries.ts';
import { selectServices } from '#services/service/queries.ts';

/** Tag that services follow. */
export interface FollowedTag {
  organization_id: string;
  registry_id: string;
  image_name: string;
  tag: string;
}

/** Claim on a tag whose image is asked for. */
export interface TagClaim extends RowClaim, FollowedTag {
  /** Image, by its digest, that services were given last; null before the first look. */
  image: string | null;
  /** Services that have not been given it: their cluster was locked, or they were refused. */
  put_off: string[];
  failures: number;
}

const TABLE = dueTable<TagClaim, 'image_tag'>({
  table: 'image_tag',
  columns: ['registry_id', 'image_name', 'tag', 'image', 'put_off', 'failures'],
  retrySeconds: 60,
  // Registries that hang delay those of their own organization only.
  share: { failing: 1, others: 2 },
  failing: { failures: sql`failures + 1` },
  failure: {
    is: sql`error is not null`,
    at: sql.ref('looked_at'),
    text: sql`image_name || ':' || tag || ': ' || error`,
  },
});

export const { renew: renewTags, giveBack: giveBackTag } = TABLE;

/** Figures of looks at tags, for operators. */
export const TAG_REPORT: WorkReport = { name: 'image-tags', status: TABLE.status };

/** Claims tags that are due, the longest due first. */
export const claimTags = (db: Database, request: ClaimRequest): Promise<TagClaim[]> => TABLE.claim(db, request);

/** Configurations of all services with `auto_deploy` that run images of a registry, in any organization. */
export const listSpecs = (db: Database) =>
  db
    .selectFrom('service')
    .select(['organization_id', 'kind', 'spec'])
    .where('container_registry_id', 'is not', null)
    .where(DEPLOYS_ITSELF)
    .where('deleting', '=', false)
    .execute();

/** Adds tags that are followed since a short time, and deletes those that are not followed any more. */
export async function reconcileTags(db: Database, followed: FollowedTag[]): Promise<void> {
  const given = sql`jsonb_to_recordset(${json(followed)}::jsonb)
    as f(organization_id uuid, registry_id uuid, image_name text, tag text)`;
  await sql`insert into image_tag (id, organization_id, registry_id, image_name, tag)
    select gen_random_uuid(), f.organization_id, f.registry_id, f.image_name, f.tag from ${given}
    where exists (select from container_registry r where r.organization_id = f.organization_id and r.id = f.registry_id)
    on conflict (organization_id, registry_id, image_name, tag) do nothing`.execute(db);
  await sql`delete from image_tag t where not exists (
    select from ${given} where f.organization_id = t.organization_id and f.registry_id = t.registry_id
      and f.image_name = t.image_name and f.tag = t.tag)`.execute(db);
}

/** Services with `auto_deploy` that run images of a registry, those of an environment beside each other. */
export const listAutoDeployed = (db: Database, scope: Scope, registryId: string) =>
  selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.container_registry_id', '=', registryId)
    .where(DEPLOYS_ITSELF)
    .where('service.deleting', '=', false)
    .where('environment.deleting', '=', false)
    .orderBy('service.environment_id')
    .orderBy('service.id')
    .execute();

/** Images that open deployments bring to services of an environment, as far as they are resolved. */
export async function listImagesUnderWay(
  db: Database,
  scope: Scope,
  environmentId: string,
): Promise<Map<string, string>> {
  const { rows } = await sql<{ id: string; image: string }>`
    select s.service_id as id, d.resolution #>> array['services', s.service_id::text, 'image'] as image
    from deployment_service s join deployment d on d.id = s.deployment_id
    where d.organization_id = ${scope.organizationId} and d.environment_id = ${environmentId} and d.status <> 'ENDED'
      and s.action = 'DEPLOY' and d.resolution #>> array['services', s.service_id::text, 'image'] is not null
    order by s.number`.execute(db);
  return new Map(rows.map(({ id, image }) => [id, image]));
}

/** Result of a look: the image, with the services that do not get it yet and a reason, or why there is none. */
export type Found = { image: string; putOff: string[]; refused: string | null } | { error: string };

/** Writes the end of a look. False if the claim is lost. */
export const endLook = (db: Database, claim: TagClaim, seconds: number, found: Found): Promise<boolean> =>
  TABLE.end(db, claim, {
    looked_at: sql`now()`,
    next_at: inSeconds(seconds),
    ...('error' in found
      ? { failures: sql`failures + 1`, error: short(found.error) }
      : { image: found.image, put_off: found.putOff, failures: 0, error: found.refused && short(found.refused) }),
  });

const short = (text: string): string => storable(text).slice(0, 500);
