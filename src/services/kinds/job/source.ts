import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { findRegistry, REGISTRY_KINDS } from '#resources/registry/index.ts';
import {
  checkRelative,
  GitRepository,
  GitRepositoryRequest,
  toGitSource,
  toGitView,
  type GitSource,
  type ResolvedCommit,
} from '#services/sources/git.ts';
import { checkImageName, ImageName, ImageTag } from '#services/images/image-name.ts';
import type { ServiceRow } from '#services/service/queries.ts';

const MAX_DOCKERFILE = 64 * 1024;
const Path = Type.String({ minLength: 1, maxLength: 1000 });
const Raw = Type.String({
  maxLength: MAX_DOCKERFILE,
  description: 'Text of a Dockerfile that is used in place of one of the repository.',
});
const Stage = Type.String({ maxLength: 255 });

export const JobSourceRequest = named(
  'JobSourceRequest',
  Type.Object({
    image: Type.Optional(
      Nullable(
        Type.Object({
          image_name: Type.Optional(ImageName),
          tag: Type.Optional(ImageTag),
          registry_id: Type.Optional(Uuid),
        }),
      ),
    ),
    docker: Type.Optional(
      Nullable(
        Type.Object({
          git_repository: Type.Optional(GitRepositoryRequest),
          dockerfile_path: Type.Optional(Nullable(Path)),
          dockerfile_raw: Type.Optional(Nullable(Raw)),
          docker_target_build_stage: Type.Optional(Nullable(Stage)),
        }),
      ),
    ),
  }),
);
export type SourceInput = Static<typeof JobSourceRequest>;

/** Source of a job's image: exactly one of the two fields. The other one is absent, not null. */
export const JobSource = named(
  'JobSource',
  Type.Object({
    image: Type.Optional(
      Type.Object({
        image_name: Type.String(),
        tag: Type.String(),
        registry_id: Type.Optional(Uuid),
        registry: Type.Object({ id: Uuid, name: Type.String(), url: Type.String(), kind: OneOf(REGISTRY_KINDS) }),
      }),
    ),
    docker: Type.Optional(
      Type.Object({
        git_repository: Type.Optional(GitRepository),
        dockerfile_path: Nullable(Type.String()),
        dockerfile_raw: Nullable(Type.String()),
        docker_target_build_stage: Nullable(Type.String()),
      }),
    ),
  }),
);

/** An image of a registry of the organization. */
interface JobImage {
  registry_id: string;
  image_name: string;
  /** Tag or digest. */
  tag: string;
}

/** Build of an image from the repository. */
export interface JobBuild {
  dockerfile_path: string | null;
  dockerfile_raw: string | null;
  docker_target_build_stage: string | null;
}

/** Source of a job's image as stored. `git_repository` stands at the same path as in every kind, where its token is looked up. */
export type StoredSource =
  | { source: { image: JobImage }; git_repository?: undefined }
  | { source: { docker: JobBuild }; git_repository: GitSource };

/** Makes the source from a body; absent fields of a source of the same form keep their value. */
export async function toSource(
  context: Context,
  place: { organizationId: string },
  input: SourceInput | undefined,
  present: StoredSource | null,
): Promise<StoredSource> {
  if (input?.image && input.docker) throw invalidField('source', 'must have either image or docker, not both of them');
  if (input?.image) return toImage(context, place, input.image, present);
  if (input?.docker) return toBuild(context, place, input.docker, present);
  // `present` may have more fields than the source.
  if (present) return { source: present.source, git_repository: present.git_repository } as StoredSource;
  throw invalidField('source', 'is required: give image or docker');
}

async function toImage(
  context: Context,
  { organizationId }: { organizationId: string },
  input: NonNullable<SourceInput['image']>,
  present: StoredSource | null,
): Promise<StoredSource> {
  const base: Partial<JobImage> = present && 'image' in present.source ? present.source.image : {};
  const given = (field: keyof JobImage): string => {
    const value = input[field] ?? base[field];
    if (value === undefined) throw invalidField(`source.image.${field}`, 'is required');
    return value;
  };
  const [registryId, name, tag] = [given('registry_id'), given('image_name'), given('tag')];
  if (registryId !== base.registry_id)
    await findRegistry(context, organizationId, registryId, 'source.image.registry_id');
  const image = { registry_id: registryId, image_name: checkImageName(name, 'source.image.image_name'), tag };
  return { source: { image } };
}

async function toBuild(
  context: Context,
  place: { organizationId: string },
  input: NonNullable<SourceInput['docker']>,
  present: StoredSource | null,
): Promise<StoredSource> {
  const base = present && 'docker' in present.source ? present.source.docker : null;
  const before = present?.git_repository ?? null;
  const field = 'source.docker.git_repository';
  const git = input.git_repository ? await toGitSource(context, place, input.git_repository, before, field) : before;
  if (!git) throw invalidField(field, 'is required');
  if (input.dockerfile_path && input.dockerfile_raw)
    throw invalidField('source.docker.dockerfile_raw', 'must be left out where dockerfile_path names one');
  const path = input.dockerfile_raw ? null : kept(input.dockerfile_path, base?.dockerfile_path);
  return {
    git_repository: git,
    source: {
      docker: {
        dockerfile_path: path && checkRelative(path, 'source.docker.dockerfile_path'),
        dockerfile_raw: input.dockerfile_path ? null : kept(input.dockerfile_raw, base?.dockerfile_raw),
        docker_target_build_stage: kept(input.docker_target_build_stage, base?.docker_target_build_stage),
      },
    },
  };
}

/** Keeps the present text if none is given; an empty text becomes null. */
const kept = (given: string | null | undefined, present: string | null | undefined): string | null =>
  (given === undefined ? present : given) || null;

/** Makes the answer of a source. */
export function toSourceView(row: ServiceRow, stored: StoredSource) {
  if ('image' in stored.source) {
    const { image } = stored.source;
    const { registry_name: name, registry_url: url, registry_kind: kind } = row;
    return { image: { ...image, registry: { id: image.registry_id, name, url, kind } } };
  }
  const commit = (row.release_resolution as { commit?: ResolvedCommit } | null)?.commit;
  const git_repository = toGitView(stored.git_repository!, commit, row.git_token_name);
  return { docker: { git_repository, ...stored.source.docker } };
}
