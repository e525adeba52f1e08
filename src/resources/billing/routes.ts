import { badRequest, notFound } from '#kernel/errors.ts';
import { wholeList } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { clusterTarget } from '#resources/cluster/index.ts';
import { Organization, organizationItself, organizationTarget } from '#resources/organization/index.ts';
import * as schema from '#resources/billing/schema.ts';
import { changePlan, editBillingInfo, getBillingInfo } from '#resources/billing/service.ts';

const tag = 'Billing';
const PATH = '/organization/{organizationId}';
const CURRENCY = 'EUR';

const FREE = 'This installation is your own: it charges nothing';

const refuse = (consequence: string) => (): never => {
  throw badRequest(`${FREE}, and ${consequence}.`);
};
const noInvoice = (): never => {
  throw notFound('Invoice');
};

const records: Route[] = [
  defineRoute({
    id: 'getOrganizationCurrentCost',
    method: 'GET',
    path: `${PATH}/currentCost`,
    tag,
    summary: 'Get what this installation charges an organization: nothing',
    description:
      'The cost is 0 and there is no trial to end. What machines and cloud providers cost is not known here.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.CurrentCost },
    handler: ({ target }) => ({
      plan: target.plan,
      remaining_trial_day: 0,
      renewal_at: null,
      cost: { total_in_cents: 0, total: 0, currency_code: CURRENCY },
    }),
  }),
  defineRoute({
    id: 'getClusterCurrentCost',
    method: 'GET',
    path: `${PATH}/cluster/{clusterId}/currentCost`,
    tag,
    summary: 'Get what this installation charges for a cluster: nothing',
    description: 'Both bounds are 0. What the machines of the cluster cost at their provider is not known here.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: schema.ClusterCost },
    handler: () => ({
      min_cost_in_cents: 0,
      min_cost: 0,
      max_cost_in_cents: 0,
      max_cost: 0,
      currency_code: CURRENCY,
    }),
  }),
  defineRoute({
    id: 'changePlan',
    method: 'POST',
    path: `${PATH}/changePlan`,
    tag,
    summary: 'Set the plan that clients show for an organization',
    description:
      'A plan is a word that clients show: none limits or costs anything here. An empty body changes nothing.',
    target: organizationItself,
    action: 'billing.edit',
    body: schema.ChangePlanRequest,
    optionalBody: true,
    answer: { status: 200, body: Organization },
    handler: (call) => changePlan(call, call.target, call.body.plan),
  }),
  defineRoute({
    id: 'getOrganizationBillingInfo',
    method: 'GET',
    path: `${PATH}/billingInfo`,
    tag,
    summary: 'Get the billing information of an organization',
    description: 'Answers the name and address that were stored last; every field is null until then.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.BillingInfo },
    handler: (call) => getBillingInfo(call, call.target.organizationId),
  }),
  defineRoute({
    id: 'editOrganizationBillingInfo',
    method: 'PUT',
    path: `${PATH}/billingInfo`,
    tag,
    summary: 'Store the billing information of an organization',
    description:
      'The record is for your own accounting: nothing is invoiced by this installation. Optional fields that are left out keep their values.',
    target: organizationItself,
    action: 'billing.edit',
    body: schema.BillingInfoRequest,
    answer: { status: 200, body: schema.BillingInfo },
    handler: (call) => editBillingInfo(call, call.target, call.body),
  }),
  defineRoute({
    id: 'getOrganizationBillingStatus',
    method: 'GET',
    path: `${PATH}/billingStatus`,
    tag,
    summary: 'Get whether an organization may go on without paying: it may',
    description: 'The status is always valid, because nothing is charged.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.BillingStatus },
    handler: () => ({ is_valid: true, message: `${FREE}.` }),
  }),
  defineRoute({
    id: 'getOrganizationBillingExternalId',
    method: 'GET',
    path: `${PATH}/billingExternalId`,
    tag,
    summary: 'Get the id of an organization at a billing service: it has none',
    description: 'The answer has no id: this installation is connected to no billing service.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.BillingExternalId },
    handler: () => ({}),
  }),
];

const invoices: Route[] = [
  defineRoute({
    id: 'listOrganizationInvoice',
    method: 'GET',
    path: `${PATH}/invoice`,
    tag,
    summary: 'List the invoices of an organization: none',
    description: 'The list is empty, because nothing is charged.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.InvoiceList },
    handler: () => wholeList([]),
  }),
  defineRoute({
    id: 'getOrganizationInvoice',
    method: 'GET',
    path: `${PATH}/invoice/{invoiceId}`,
    tag,
    summary: 'Get an invoice: there is none',
    description: 'Every call is answered with 404, because nothing is charged.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.Invoice },
    handler: noInvoice,
  }),
  defineRoute({
    id: 'getOrganizationInvoicePDF',
    method: 'GET',
    path: `${PATH}/invoice/{invoiceId}/download`,
    tag,
    summary: 'Download an invoice: there is none',
    description: 'Every call is answered with 404, because nothing is charged.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.InvoiceDownload },
    handler: noInvoice,
  }),
  defineRoute({
    id: 'organizationDownloadAllInvoices',
    method: 'POST',
    path: `${PATH}/downloadInvoices`,
    tag,
    summary: 'Download all invoices: refused, with the reason',
    description: 'Every call is answered with 400, because there are no invoices.',
    target: organizationTarget,
    action: 'billing.edit',
    answer: { status: 202, body: Type.Object({}) },
    handler: refuse('there are no invoices'),
  }),
  defineRoute({
    id: 'generateBillingUsageReport',
    method: 'POST',
    path: `${PATH}/billingUsageReport`,
    tag,
    summary: 'Make a report of what is charged: refused, with the reason',
    description:
      'Every call is answered with 400, because usage is not counted for billing. POST /environment/{environmentId}/deploymentBuildUsageReport reports the builds of an execution.',
    target: organizationTarget,
    action: 'billing.edit',
    body: schema.UsageReportRequest,
    answer: { status: 200, body: schema.UsageReport },
    handler: refuse('counts no usage that it could report'),
  }),
];

const payments: Route[] = [
  defineRoute({
    id: 'addCreditCode',
    method: 'POST',
    path: `${PATH}/creditCode`,
    tag,
    summary: 'Redeem a credit code: refused, with the reason',
    description: 'Every call is answered with 400, because there is nothing that credit could pay.',
    target: organizationTarget,
    action: 'billing.edit',
    body: schema.CreditCodeRequest,
    optionalBody: true,
    answer: { status: 200, body: Type.Object({}) },
    handler: refuse('takes no credit codes'),
  }),
  defineRoute({
    id: 'listOrganizationCreditCards',
    method: 'GET',
    path: `${PATH}/creditCard`,
    tag,
    summary: 'List the credit cards of an organization: none',
    description: 'The list is empty: this installation stores no cards.',
    target: organizationTarget,
    action: 'billing.read',
    answer: { status: 200, body: schema.CreditCardList },
    handler: () => wholeList([]),
  }),
  defineRoute({
    id: 'addCreditCard',
    method: 'POST',
    path: `${PATH}/creditCard`,
    tag,
    summary: 'Add a credit card: refused, with the reason',
    description: 'Every call is answered with 400, and the card is neither stored nor written to a log.',
    target: organizationTarget,
    action: 'billing.edit',
    body: schema.CreditCardRequest,
    answer: { status: 201, body: schema.CreditCard },
    handler: refuse('stores no cards'),
  }),
  defineRoute({
    id: 'deleteCreditCard',
    method: 'DELETE',
    path: `${PATH}/creditCard/{creditCardId}`,
    tag,
    summary: 'Delete a credit card: there is none',
    description: 'Every call is answered with 404: this installation stores no cards.',
    target: organizationTarget,
    action: 'billing.edit',
    answer: { status: 204, body: null },
    handler: () => {
      throw notFound('Credit card');
    },
  }),
];

/** An installation of one's own charges nothing (decision 0043). */
export const billingRoutes: Route[] = [...records, ...invoices, ...payments];
