import { named, Nullable, OneOf, PlainListOf, Type, Uuid, type TSchema } from '#platform/http/schema.ts';

const Credentials = Type.Object({ id: Type.Optional(Uuid), name: Type.Optional(Type.String()) });
const InfoProvider = OneOf(['AWS', 'SCW', 'GCP', 'ON_PREMISE', 'AZURE']);

/** Provider, account and region that a cluster runs with. */
export const ClusterCloudProviderInfo = named(
  'ClusterCloudProviderInfo',
  Type.Object({
    cloud_provider: Type.Optional(InfoProvider),
    credentials: Credentials,
    region: Type.Optional(Type.String()),
  }),
);

/** Provider, account and region in a request: fields that are left out or null stay. */
export const ClusterCloudProviderInfoRequest = named(
  'ClusterCloudProviderInfoRequest',
  Type.Object({
    cloud_provider: Type.Optional(Nullable(InfoProvider)),
    credentials: Type.Optional(Nullable(Credentials)),
    region: Type.Optional(Nullable(Type.String())),
  }),
);

const ClusterRoute = named(
  'ClusterRoute',
  Type.Object({
    destination: Type.String({ minLength: 1, description: 'Network as a CIDR.' }),
    target: Type.String({ minLength: 1 }),
    description: Type.String(),
  }),
);

export const RoutingTable = PlainListOf(ClusterRoute);
export const RoutingTableRequest = named(
  'ClusterRoutingTableRequest',
  Type.Object({ routes: Type.Array(ClusterRoute, { maxItems: 200 }) }),
);

const Domain = Type.String({
  minLength: 1,
  maxLength: 253,
  pattern: '^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$',
});
const secret = { minLength: 1, writeOnly: true, description: 'Never answered.' };

export interface DnsProviderInput {
  provider: 'QOVERY' | 'CLOUDFLARE' | 'ROUTE53';
  domain: string;
  email?: string;
  api_token?: string;
  proxied?: boolean;
  credentials?: { type: 'STATIC'; aws_access_key_id: string; aws_secret_access_key: string };
  aws_region?: string;
  hosted_zone_id?: string | null;
}

const zone = { aws_region: Type.String(), hosted_zone_id: Type.Optional(Nullable(Type.String())) };

const oneProvider = <T>(...variants: TSchema[]) =>
  Type.Object({ dns_provider: Type.Unsafe<T>({ type: 'object', anyOf: variants }) });

/** DNS provider for the names of a cluster's services. */
export const DnsProviderRequest = named(
  'ClusterDnsProviderRequest',
  oneProvider<DnsProviderInput>(
    Type.Object({ provider: OneOf(['QOVERY']), domain: Domain }),
    Type.Object({
      provider: OneOf(['CLOUDFLARE']),
      domain: Domain,
      email: Type.String({ format: 'email' }),
      api_token: Type.String(secret),
      proxied: Type.Optional(Type.Boolean()),
    }),
    Type.Object({
      provider: OneOf(['ROUTE53']),
      domain: Domain,
      credentials: Type.Object({
        type: OneOf(['STATIC']),
        aws_access_key_id: Type.String({ minLength: 1 }),
        aws_secret_access_key: Type.String(secret),
      }),
      ...zone,
    }),
  ),
);

export const DnsProvider = named(
  'ClusterDnsProvider',
  oneProvider<Record<string, unknown>>(
    Type.Object({ provider: OneOf(['QOVERY']), domain: Type.String() }),
    Type.Object({
      provider: OneOf(['CLOUDFLARE']),
      domain: Type.String(),
      email: Type.String({ format: 'email' }),
      proxied: Type.Boolean(),
    }),
    Type.Object({
      provider: OneOf(['ROUTE53']),
      domain: Type.String(),
      credentials: Type.Object({ type: OneOf(['STATIC']), aws_access_key_id: Type.String() }),
      ...zone,
    }),
  ),
);
