import { conflict, forbidden, internal } from '#kernel/errors.ts';
import { includes } from '#platform/access/actions.ts';
import { refuseConditions } from '#platform/access/granting.ts';
import { levelAt, type Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { takenNames } from '#platform/database/taken-name.ts';
import { audit } from '#platform/events/audit.ts';
import { fetchPage } from '#platform/http/paging.ts';
import type { PageQuery } from '#platform/http/schema.ts';
import { makeOrganization } from '#resources/organization/bootstrap.ts';
import * as queries from '#resources/organization/queries.ts';
import type { OrganizationTarget } from '#resources/organization/target.ts';

const refuseTakenName = takenNames('organization', 'organization');

/** An organization as it is answered. There is no billing: a plan is a word that clients show. */
const toOrganizationView = (context: Context, row: queries.OrganizationRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description,
  plan: row.plan,
  website_url: row.website_url,
  repository: row.repository,
  logo_url: row.logo_url,
  icon_url: row.icon_url,
  admin_emails: row.admin_emails as string[] | null,
  owner: row.owner ?? undefined,
  billing_deployment_restriction: null,
  organization_plan: { plan: row.plan, audit_logs_retention_in_days: context.settings.eventRetentionDays },
});

/** Lists the caller's organizations; the name and id of a single one stand beside the list too (docs/contributing/rules.md 2). */
export async function listOrganizations(context: Context, principal: Principal, query: PageQuery) {
  const ids = principal.grants.map((grant) => grant.organizationId);
  const list = await fetchPage(context.db, queries.listOrganizations(context.db, ids), query, (row) =>
    toOrganizationView(context, row),
  );
  const [only] = list.results;
  if (!only || list.pagination.total_count !== 1) return list;
  const { id, name, created_at, updated_at } = only;
  return { ...list, id, name, created_at, updated_at };
}

export async function getOrganization(context: Context, id: string) {
  const row = await queries.findOrganizationById(context.db, id);
  if (!row) throw internal(`Organization ${id} is gone within its own request.`);
  return toOrganizationView(context, row);
}

/**
 * Makes an organization whose owner the caller is; a token that does so acts in it from then on. 403 unless the caller is the
 * first administrator or the settings open it to everybody (docs/contributing/rules.md 2), 409 if the name is taken.
 */
export async function createOrganization(context: Context, principal: Principal, input: queries.OrganizationColumns) {
  await requireFounder(context, principal);
  const name = input.name.trim();
  const id = await refuseTakenName(name, () => makeOrganization(context, name, principal.userId));
  await queries.updateOrganization(context.db, id, { ...input, name });
  if (principal.kind === 'token') await queries.admitToken(context.db, principal.id, id);
  return getOrganization(context, id);
}

/** Changes an organization; fields that are left out stay. */
export async function editOrganization(
  context: Context,
  organization: OrganizationTarget,
  input: queries.OrganizationColumns,
) {
  const { id } = organization;
  const before = await getOrganization(context, id);
  const name = input.name.trim();
  await refuseTakenName(name, () => queries.updateOrganization(context.db, id, { ...input, name }));
  const after = await getOrganization(context, id);
  const target = { type: 'ORGANIZATION' as const, id, name };
  await audit(context, { organizationId: id, type: 'UPDATE', target, before, after });
  return after;
}

/** Deletes an organization with all its records; 409 while it has clusters, whose workloads must be torn down first. */
export async function deleteOrganization(context: Context, organization: OrganizationTarget): Promise<void> {
  const { id, name } = organization;
  const { clusters } = await queries.countClusters(context.db, id);
  if (clusters > 0) throw conflict(`Organization ${name} still has ${clusters} clusters: delete them first.`);
  const before = await getOrganization(context, id);
  await queries.deleteOrganizationRow(context.db, id);
  await audit(context, {
    organizationId: id,
    type: 'DELETE',
    target: { type: 'ORGANIZATION', id, name },
    before,
  });
}

async function requireFounder(context: Context, principal: Principal): Promise<void> {
  refuseConditions(principal);
  const isWhole =
    principal.kind === 'user' ||
    principal.grants.some((grant) => includes(levelAt(grant, { organizationId: grant.organizationId }), 'ADMIN'));
  const mayFound =
    context.settings.openOrganizations || (await queries.isFirstAdministrator(context.db, principal.userId));
  if (!isWhole || !mayFound)
    throw forbidden(
      'Only the first administrator creates organizations here; QUARTERDECK_OPEN_ORGANIZATIONS=true opens it to everybody.',
    );
}
