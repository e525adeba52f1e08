import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { editOrganization, getOrganization, type OrganizationTarget } from '#resources/organization/index.ts';
import * as queries from '#resources/billing/queries.ts';
import type { BillingInfo, BillingInfoRequest } from '#resources/billing/schema.ts';

const NONE: BillingInfo = {
  first_name: null,
  last_name: null,
  email: null,
  address: null,
  city: null,
  zip: null,
  state: null,
  country_code: null,
  company: null,
  vat_number: null,
};

/** Billing information of an organization; every field is null until it is stored. */
export async function getBillingInfo({ db }: Context, organizationId: string): Promise<BillingInfo> {
  const row = await queries.findBillingInfo(db, { organizationId });
  return { ...NONE, ...(row?.fields as Partial<BillingInfo> | undefined) };
}

/** Stores billing information; optional fields that are left out keep their values. */
export async function editBillingInfo(context: Context, organization: OrganizationTarget, input: BillingInfoRequest) {
  const { organizationId, name } = organization;
  const before = await getBillingInfo(context, organizationId);
  const after: BillingInfo = { ...before, ...input };
  await queries.saveBillingInfo(context.db, { organizationId }, after);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    target: { type: 'ORGANIZATION', id: organizationId, name, sub: 'BILLING_INFO' },
    before,
    after,
  });
  return after;
}

/** Sets the plan that clients show; without one nothing changes and nothing is recorded. */
export const changePlan = (context: Context, organization: OrganizationTarget, plan: string | undefined) =>
  plan === undefined
    ? getOrganization(context, organization.organizationId)
    : editOrganization(context, organization, { name: organization.name, plan });
