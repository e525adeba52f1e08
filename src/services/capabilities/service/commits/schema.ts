import { DateTime, ListOf, named, Nullable, Type } from '#platform/http/schema.ts';

const Commit = named(
  'Commit',
  Type.Object({
    created_at: DateTime,
    git_commit_id: Type.String(),
    tag: Type.String(),
    message: Type.String(),
    author_name: Type.String(),
    author_avatar_url: Type.Optional(Type.String()),
    commit_page_url: Type.Optional(Type.String()),
  }),
);
export const CommitList = ListOf(Commit);

/** An author of commits. The id is left out: who writes commits need not be a user. */
const Contributor = named(
  'Contributor',
  Type.Object({
    id: Type.Optional(Type.String({ format: 'uuid' })),
    created_at: DateTime,
    updated_at: DateTime,
    first_name: Type.String(),
    last_name: Type.String(),
    email: Type.Optional(Type.String()),
    profile_picture_url: Type.Optional(Nullable(Type.String())),
  }),
);
export const ContributorList = ListOf(Contributor);
