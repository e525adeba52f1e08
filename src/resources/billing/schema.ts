import { DateTime, ListOf, Merge, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { Plan, ServiceType } from '#resources/organization/index.ts';

const cost = { total_in_cents: Type.Integer(), total: Type.Number(), currency_code: Type.String() };

export const CurrentCost = named(
  'CurrentCost',
  Type.Object({
    plan: Plan,
    remaining_trial_day: Type.Integer(),
    renewal_at: Nullable(DateTime),
    cost: Type.Object(cost),
  }),
);

export const ClusterCost = named(
  'ClusterCost',
  Type.Object({
    min_cost_in_cents: Type.Integer(),
    min_cost: Type.Number(),
    max_cost_in_cents: Type.Integer(),
    max_cost: Type.Number(),
    currency_code: Type.String(),
  }),
);

export const CreditCodeRequest = named(
  'CreditCodeRequest',
  Type.Object({ code: Type.Optional(Type.String({ maxLength: 255 })) }),
);
export const ChangePlanRequest = named('ChangePlanRequest', Type.Object({ plan: Type.Optional(Plan) }));

const Part = Type.String({ maxLength: 255 });
export const BillingInfoRequest = named(
  'BillingInfoRequest',
  Type.Object({
    first_name: Part,
    last_name: Part,
    email: Type.String({ format: 'email', maxLength: 320 }),
    address: Type.String({ maxLength: 2000 }),
    city: Part,
    zip: Part,
    state: Type.Optional(Part),
    country_code: Type.String({ maxLength: 10, description: 'Code of the country, such as FR.' }),
    company: Type.Optional(Part),
    vat_number: Type.Optional(Part),
  }),
);
export type BillingInfoRequest = Static<typeof BillingInfoRequest>;

const Answered = Nullable(Type.String());
export const BillingInfo = named(
  'BillingInfo',
  Type.Object({
    first_name: Answered,
    last_name: Answered,
    email: Answered,
    address: Answered,
    city: Answered,
    zip: Answered,
    state: Answered,
    country_code: Answered,
    company: Answered,
    vat_number: Answered,
  }),
);
export type BillingInfo = Static<typeof BillingInfo>;

export const BillingStatus = named('BillingStatus', Type.Object({ is_valid: Type.Boolean(), message: Type.String() }));

export const UsageReportRequest = named(
  'BillingUsageReportRequest',
  Type.Object({ from: DateTime, to: DateTime, report_expiration_in_seconds: Type.Integer({ minimum: 1 }) }),
);
export const UsageReport = named(
  'BillingUsageReport',
  Type.Object({ report_url: Type.String(), delete_report_url: Type.String() }),
);

export const BillingExternalId = named('BillingExternalId', Type.Object({ id: Type.Optional(Type.String()) }));

export const Invoice = named(
  'Invoice',
  Merge(
    Type.Object(cost),
    Type.Object({
      id: Uuid,
      created_at: DateTime,
      status: OneOf(['NOT_PAID', 'PAID', 'PAYMENT_DUE', 'PENDING', 'POSTED', 'UNKNOWN', 'VOIDED']),
    }),
  ),
);
export const InvoiceList = ListOf(Invoice);

/** The reference interface answers a link of a service here. */
export const InvoiceDownload = named(
  'InvoiceDownload',
  Type.Object({
    service_id: Uuid,
    service_type: ServiceType,
    url: Type.String(),
    internal_port: Type.Integer(),
    external_port: Type.Integer(),
    is_qovery_domain: Type.Boolean(),
    is_default: Type.Boolean(),
  }),
);

export const CreditCardRequest = named(
  'CreditCardRequest',
  Type.Object({
    number: Type.String({ maxLength: 50, writeOnly: true }),
    cvv: Type.String({ maxLength: 10, writeOnly: true }),
    expiry_month: Type.Integer(),
    expiry_year: Type.Integer(),
    token: Type.Optional(Nullable(Type.String({ maxLength: 255, writeOnly: true }))),
  }),
);
export const CreditCard = named(
  'CreditCard',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    expiry_month: Type.Integer(),
    expiry_year: Type.Integer(),
    last_digit: Type.String(),
    is_expired: Type.Boolean(),
    brand: Type.String(),
  }),
);
export const CreditCardList = ListOf(CreditCard);
