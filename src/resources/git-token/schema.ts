import { kindsWith, serviceTypes } from '#kernel/kinds.ts';
import { DateTime, ListOf, Name, named, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { serviceUse } from '#resources/organization/index.ts';

const GitProvider = OneOf(['BITBUCKET', 'GITHUB', 'GITLAB']);
const ApiUrl = Type.String({ format: 'uri', pattern: '^https?://', maxLength: 2000 });
const Workspace = Type.Optional(Type.String({ maxLength: 255 }));
const Token = Type.String({ minLength: 1, maxLength: 10_000, description: 'Stored encrypted and never answered.' });

const fields = {
  name: Name,
  description: Type.Optional(Type.String({ maxLength: 2000 })),
  type: GitProvider,
  workspace: Workspace,
  git_api_url: Type.Optional(ApiUrl),
  expired_at: Type.Optional(DateTime),
};

export const GitTokenRequest = named('GitTokenRequest', Type.Object({ ...fields, token: Token }));
export const GitTokenEditRequest = named(
  'GitTokenEditRequest',
  Type.Object({ ...fields, token: Type.Optional(Token) }),
);

export const GitToken = named(
  'GitToken',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    type: GitProvider,
    expired_at: Type.Optional(Type.String({ format: 'date' })),
    workspace: Type.Optional(Type.String()),
    associated_services_count: Type.Integer(),
    git_api_url: Type.String(),
  }),
);
export const GitTokenList = ListOf(GitToken);

const GitTokenAssociatedService = named(
  'GitTokenAssociatedService',
  Type.Object({
    ...serviceUse,
    service_type: OneOf(serviceTypes(kindsWith('usesGitTokens'))),
  }),
);
export const GitTokenAssociatedServiceList = ListOf(GitTokenAssociatedService);
