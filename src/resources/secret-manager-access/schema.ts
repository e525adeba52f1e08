import { ListOf, named, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';
import { RECORD_SCOPES } from '#deployments/model/variables.ts';

export const UpstreamSecretsQuery = Type.Object({
  namePrefix: Type.Optional(Type.String({ maxLength: 512, description: 'What the names begin with.' })),
});

export const UpstreamSecretList = PlainListOf(Type.String());

export const ExternalSecretUseList = ListOf(
  named(
    'ExternalSecretUse',
    Type.Object({
      project_id: Uuid,
      project_name: Type.String(),
      environment_id: Uuid,
      environment_name: Type.String(),
      service_id: Type.Optional(Uuid),
      service_name: Type.Optional(Type.String()),
      service_type: Type.Optional(OneOf(RECORD_SCOPES, { description: 'Where the variable stands.' })),
      variable_name: Type.String(),
      external_secret_name: Type.String(),
    }),
  ),
);
