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
  /** Last call of the registry that no look has answered; null for none. */
  call_id: string | null;
}

const TABLE = dueTable<TagClaim, 'image_tag'>({
  table: 'image_tag',
  columns: ['registry_id', 'image_name', 'tag', 'image', 'put_off', 'failures', 'call_id'],
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

/** Channel whose messages tell of calls of registries. */
export const REGISTRY_CALLS = 'registry_calls';

/** Condition on tags that are looked at without polls: the registry has called, or services wait for the image. */
const IS_CALLED = sql<boolean>`(call_id is not null or cardinality(put_off) > 0)`;

/** Claims tags that are due, the longest due first. Without polls, those alone that a registry has called for. */
export const claimTags = (db: Database, request: ClaimRequest, polls: boolean): Promise<TagClaim[]> =>
  TABLE.claim(db, request, polls ? undefined : IS_CALLED);

/** Configurations of all services with `auto_deploy` that run images of a registry, in any organization or of one registry. */
export const listSpecs = (db: Database, registry?: { organizationId: string; registryId: string }) =>
  db
    .selectFrom('service')
    .select(['organization_id', 'kind', 'spec'])
    .where('container_registry_id', 'is not', null)
    .where(DEPLOYS_ITSELF)
    .where('deleting', '=', false)
    .$if(registry !== undefined, (query) =>
      query
        .where('organization_id', '=', registry!.organizationId)
        .where('container_registry_id', '=', registry!.registryId),
    )
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

/**
 * Makes tags due that a registry has called for. A tag is looked at once in so many seconds at most, however often it is called for. One that
 * is not recorded yet is added.
 */
export async function callForTags(db: Database, called: FollowedTag[], restSeconds: number): Promise<void> {
  await sql`insert into image_tag (id, organization_id, registry_id, image_name, tag, call_id)
    select gen_random_uuid(), f.organization_id, f.registry_id, f.image_name, f.tag, gen_random_uuid()
    from jsonb_to_recordset(${json(called)}::jsonb) as f(organization_id uuid, registry_id uuid, image_name text, tag text)
    where exists (select from container_registry r where r.organization_id = f.organization_id and r.id = f.registry_id)
    order by f.image_name, f.tag
    on conflict (organization_id, registry_id, image_name, tag) do update set
      call_id = excluded.call_id,
      next_at = least(image_tag.next_at, greatest(now(), image_tag.looked_at + ${restSeconds} * interval '1 second'))`.execute(
    db,
  );
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

/** Seconds from a look to the next one, and to that for a call which came meanwhile. */
export interface NextLook {
  seconds: number;
  restSeconds: number;
}

/**
 * Writes the end of a look. A call is answered by a look that began after it and found an image; the registry may have pushed after this one
 * has asked. False if the claim is lost.
 */
export const endLook = (
  db: Database,
  claim: TagClaim,
  { seconds, restSeconds }: NextLook,
  found: Found,
): Promise<boolean> => {
  const isSame = sql`call_id is not distinct from ${claim.call_id}::uuid`;
  return TABLE.end(db, claim, {
    looked_at: sql`now()`,
    next_at: sql`case when ${isSame} then ${inSeconds(seconds)} else ${inSeconds(Math.min(seconds, restSeconds))} end`,
    ...('error' in found
      ? { failures: sql`failures + 1`, error: short(found.error) }
      : {
          call_id: sql`case when ${isSame} then null else call_id end`,
          image: found.image,
          put_off: found.putOff,
          failures: 0,
          error: found.refused && short(found.refused),
        }),
  });
};

const short = (text: string): string => storable(text).slice(0, 500);
