import {
  ListOf,
  named,
  Nullable,
  OneOf,
  PageQuery,
  PlainListOf,
  Type,
  Uuid,
  type Static,
} from '#platform/http/schema.ts';
import { GIT_PROVIDERS } from '#resources/git-token/index.ts';

const Provider = OneOf(GIT_PROVIDERS);

const token = {
  gitTokenId: Type.Optional({
    ...Uuid,
    description: 'Git token to ask with; without it the oldest of the provider that has not expired.',
  }),
};
const name = {
  name: Type.Optional(
    Type.String({
      maxLength: 1000,
      description: 'The repository with its owner, as the list of repositories names it.',
    }),
  ),
};
const pages = PageQuery.properties;

export const RepositoriesQuery = Type.Object({ ...pages, ...token });
export const BranchesQuery = Type.Object({ ...pages, ...token, ...name });
export const OwnBranchesQuery = Type.Object({ ...pages, ...name });

export const GitAuthProviderList = ListOf(
  named(
    'GitAuthProvider',
    Type.Object({
      id: Type.String({ description: 'Id of the git token.' }),
      name: Type.String({ description: 'The provider.' }),
      owner: Type.String(),
      use_bot: Type.Boolean(),
    }),
  ),
);

export const ProvidedRepositoryList = ListOf(
  named(
    'GitProviderRepository',
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      url: Type.String(),
      default_branch: Type.Optional(Type.String()),
      is_private: Type.Boolean(),
    }),
  ),
);

export const ProvidedBranchList = ListOf(named('GitProviderBranch', Type.Object({ name: Type.String() })));

export const DirectoriesRequest = named(
  'GitRepositoryDirectoriesRequest',
  Type.Object({
    url: Type.String({ minLength: 1, maxLength: 2000 }),
    branch: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    root_path: Type.Optional(Type.String({ maxLength: 1000, default: '/' })),
    git_token_id: Type.Optional(Nullable(Uuid)),
    provider: Provider,
  }),
);
export type DirectoriesInput = Static<typeof DirectoriesRequest>;

/** Directories as `root_path` takes them. */
export const DirectoryList = PlainListOf(Type.String());
