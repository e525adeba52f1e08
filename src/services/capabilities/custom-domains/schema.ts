import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

export const CustomDomainRequest = named(
  'CustomDomainRequest',
  Type.Object({
    domain: Type.String({ minLength: 1, maxLength: 255 }),
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
    status: Type.Optional(
      OneOf(['VALIDATION_PENDING'], { description: 'Left out once the domain was seen to lead here.' }),
    ),
  }),
);
export const CustomDomainList = ListOf(CustomDomain);

export const CHECK_STATUSES = [
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
        }),
      ),
    ),
  }),
);
