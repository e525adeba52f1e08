import { DateTime, ListOf, named, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

const own = {
  mode: OneOf(['EXCLUDE', 'MATCH']),
  type: OneOf(['PATH']),
  value: Type.String({
    minLength: 1,
    maxLength: 1000,
    description: 'A file or folder of the repository, from its root; a folder stands for all that is in it.',
  }),
};

export const DeploymentRestrictionRequest = named('DeploymentRestrictionRequest', Type.Object(own));
export type DeploymentRestrictionInput = Static<typeof DeploymentRestrictionRequest>;

export const DeploymentRestriction = named(
  'DeploymentRestriction',
  Type.Object({ id: Uuid, created_at: DateTime, updated_at: DateTime, ...own }),
);
export const DeploymentRestrictionList = ListOf(DeploymentRestriction);
