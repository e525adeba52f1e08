import { named, Nullable, OneOf, PlainListOf, Type } from '#platform/http/schema.ts';
import { GitRepositoryRequest } from '#services/sources/git.ts';

export const TerraformVariableParsingRequest = named(
  'TerraformVariableParsingRequest',
  Type.Object({ git_repository: GitRepositoryRequest }),
);

export const TerraformVariableDefinitionList = PlainListOf(
  named(
    'TerraformVariableDefinition',
    Type.Object({
      key: Type.String(),
      sensitive: Type.Boolean(),
      nullable: Type.Boolean(),
      default: Type.Optional(Nullable(Type.String())),
      description: Nullable(Type.String()),
      source: Type.String({ description: 'Path of the file that declares it.' }),
    }),
  ),
);

export const TfVarsListRequest = named(
  'TfVarsListRequest',
  Type.Object({
    git_repository: GitRepositoryRequest,
    mode: Type.Object({
      type: OneOf(['AutoDiscover', 'SpecificPaths']),
      paths: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 1000 }), {
          maxItems: 50,
          description: 'With SpecificPaths: files, from the root of the repository or from root_path.',
        }),
      ),
    }),
  }),
);

export const TfVarsFileList = PlainListOf(
  named(
    'TfVarsFile',
    Type.Object({
      source: Type.String({ description: 'Path of the file.' }),
      variables: Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
    }),
  ),
);
