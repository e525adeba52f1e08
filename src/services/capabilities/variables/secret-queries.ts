import { sql, type Database, type Scope } from '#platform/database/index.ts';

export interface SecretVersion {
  variable_id: string;
  version: number;
  organization_id: string;
  sealed: Buffer;
}

export const insertSecretVersions = (db: Database, versions: SecretVersion[]) =>
  db.insertInto('variable_secret_version').values(versions).execute();

/** Encrypted values of secrets, of all versions that are named. */
export const listSecretVersions = (db: Database, scope: Scope, secrets: { id: string; version: number }[]) =>
  db
    .selectFrom('variable_secret_version')
    .select(['variable_id', 'version', 'sealed'])
    .where('organization_id', '=', scope.organizationId)
    .where(
      sql<boolean>`(variable_id, version) in (select * from unnest(${secrets.map((one) => one.id)}::uuid[], ${secrets.map((one) => one.version)}::int[]))`,
    )
    .execute();

/** Marks the versions that are no variable's present one any more. Of the whole installation: housekeeping. */
export const markSuperseded = (db: Database, now: Date) =>
  db
    .updateTable('variable_secret_version as version')
    .set({ superseded_at: now })
    .where('superseded_at', 'is', null)
    .where(
      sql<boolean>`not exists (select from variable where variable.id = version.variable_id and variable.value_version = version.version)`,
    )
    .execute();

/**
 * Removes versions that were superseded before a time and that no kept snapshot names: of a release, or of a deployment (a rollback
 * deploys either).
 */
export const deleteUnnamedVersions = async (db: Database, before: Date): Promise<number> => {
  const result = await sql`
    with candidate as (
      select variable_id, version, organization_id from variable_secret_version where superseded_at < ${before}
    ), organizations as (select distinct organization_id from candidate),
    named as (
      select jsonb_path_query(release.snapshot, 'lax $.variables[*].secret') as secret
        from release join organizations using (organization_id)
      union all
      select jsonb_path_query(deployment.snapshot, path::jsonpath)
        from deployment join organizations using (organization_id),
          (values ('lax $.services[*].variables[*].secret'), ('lax $.shared[*].secret')) as paths (path)
    )
    delete from variable_secret_version gone using candidate
    where gone.variable_id = candidate.variable_id and gone.version = candidate.version
      and not exists (select from named
        where named.secret ->> 'id' = candidate.variable_id::text and named.secret ->> 'version' = candidate.version::text)
  `.execute(db);
  return Number(result.numAffectedRows ?? 0);
};
