import { ListOf, named, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';

const Link = named(
  'Link',
  Type.Object({
    service_id: Uuid,
    service_type: OneOf(SERVICE_KINDS),
    url: Type.String(),
    internal_port: Type.Integer({ description: 'Port that the service listens on.' }),
    external_port: Type.Integer({ description: 'Port of the URL.' }),
    is_qovery_domain: Type.Boolean({
      description: 'Whether the host name is given by the installation; else a custom domain.',
    }),
    is_default: Type.Boolean(),
  }),
);
export const LinkList = ListOf(Link);
