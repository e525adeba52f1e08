import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

import { CertificateSchema } from '#services/capabilities/service/custom-domains/certificate.ts';

export const CustomDomainRequest = named(
  'CustomDomainRequest',
  Type.Object({
    domain: Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        'Full host name such as shop.example.com: no scheme, port, path or wildcard, and none of the domains of this installation. International names are stored in punycode.',
    }),
    generate_certificate: Type.Boolean(),
    use_cdn: Type.Optional(Type.Boolean()),
  }),
);
export type CustomDomainInput = Static<typeof CustomDomainRequest>;

export const CustomDomain = named(
  'CustomDomain',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    domain: Type.String(),
    generate_certificate: Type.Boolean(),
    use_cdn: Type.Boolean(),
    validation_domain: Type.String({ description: 'Host name that the domain has to be a CNAME of.' }),
    validation_record: named(
      'CustomDomainValidationRecord',
      Type.Object({
        type: OneOf(['TXT']),
        name: Type.String({ description: 'Name of the DNS record to create.' }),
        value: Type.String({ description: 'One of its values; other values may stand beside it.' }),
      }),
    ),
    validation_state: OneOf(['PENDING', 'VALIDATED', 'EXPIRED', 'LOST'], {
      description:
        'Only a VALIDATED domain is routed, from the next deployment on. PENDING: the TXT record has not been seen yet. EXPIRED: it was not seen in time. LOST: it was removed, or another organization has proven the domain. An EXPIRED or LOST domain is looked up when it is asked for and when the service is deployed.',
    }),
    validation_error: Nullable(
      Type.String({ description: 'Result of the last lookup of the TXT record, null for a good one.' }),
    ),
    validation_checked_at: Nullable(DateTime),
    certificate: CertificateSchema,
    status: Type.Optional(
      OneOf(['VALIDATION_PENDING'], { description: 'Left out once the domain is proven and was seen to lead here.' }),
    ),
  }),
);
export const CustomDomainList = ListOf(CustomDomain);

const CHECK_STATUSES = [
  'RESOLVES_TO_IP',
  'MATCHES_LOAD_BALANCER_HOST',
  'DOMAIN_NOT_CONFIGURED',
  'DOMAIN_LINKED_TO_WRONG_HOST',
  'GENERIC_FAILURE',
] as const;
export type CheckStatus = (typeof CHECK_STATUSES)[number];

export const CustomDomainCheckList = named(
  'CustomDomainCheckList',
  Type.Object({
    results: Type.Array(
      named(
        'CustomDomainCheck',
        Type.Object({
          domain_name: Type.String(),
          status: OneOf(CHECK_STATUSES),
          error_details: Nullable(Type.String()),
          certificate: CertificateSchema,
        }),
      ),
    ),
  }),
);
