import { named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { LANGUAGES } from '#services/recognition/index.ts';
import { GitRepositoryRequest } from '#services/sources/git.ts';

const FilePath = Type.String({ minLength: 1, maxLength: 1000 });

export const DockerfileCheckRequest = named(
  'DockerfileCheckRequest',
  Type.Object({ git_repository: GitRepositoryRequest, dockerfile_path: FilePath }),
);
export const DockerfileCheck = named(
  'DockerfileCheck',
  Type.Object({
    dockerfile_path: Type.String(),
    arg: Type.Array(Type.String({ description: 'Name that an ARG instruction declares.' })),
    repositories: Type.Array(Type.String({ description: 'Image that it is based on or copies from, without a tag.' })),
  }),
);

export const DockerfileGenerationRequest = named(
  'DockerfileGenerationRequest',
  Type.Object({
    git_repository: GitRepositoryRequest,
    port: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 65535,
        description: 'Port that an application listens on, 8080 without; not allowed with job_type.',
      }),
    ),
    job_type: Type.Optional(
      Nullable(
        OneOf(['CRON', 'LIFECYCLE'], { description: 'Makes that of a job; without it, that of an application.' }),
      ),
    ),
    has_command: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'True if the service names its command itself, in entrypoint or arguments.',
      }),
    ),
  }),
);
export type DockerfileGenerationInput = Static<typeof DockerfileGenerationRequest>;

export const GeneratedDockerfile = named(
  'GeneratedDockerfile',
  Type.Object({
    language: OneOf(LANGUAGES),
    recognised_by: Type.String({ description: 'Files and fields that tell what the project is.' }),
    dockerfile: Type.String(),
    dockerignore: Nullable(
      Type.String({ description: 'Text of a .dockerignore; null where the repository has its own.' }),
    ),
    root_path: Type.String({ description: 'Folder that is built: that of the project, or of its workspace.' }),
    dockerfile_path: Type.String({ description: 'Where to commit the Dockerfile, from root_path.' }),
    used_dockerfile: Nullable(
      Type.String({
        description: 'Dockerfile of the repository, from its root, which services use instead; null if it has none.',
      }),
    ),
  }),
);

export const GitFileCheckRequest = named(
  'GitFileCheckRequest',
  Type.Object({
    git_repository: GitRepositoryRequest,
    files: Type.Array(FilePath, { minItems: 1, maxItems: 100, description: 'Relative to root_path.' }),
  }),
);

export const HelmRepositoryCheckRequest = named(
  'HelmRepositoryCheckRequest',
  Type.Object({ git_repository: GitRepositoryRequest }),
);

export const ContainerImageCheckRequest = named(
  'ContainerImageCheckRequest',
  Type.Object({
    registry_id: Type.Optional(Uuid),
    image_name: Type.String({
      maxLength: 500,
      pattern: '^[A-Za-z0-9][A-Za-z0-9._:/-]*$',
      description: 'Within the registry of registry_id; without that, with the host of its registry, or of Docker Hub.',
    }),
    tag: Type.String({ pattern: '^(\\w[\\w.-]{0,127}|sha256:[0-9a-f]{64})$' }),
  }),
);
export type ContainerImageCheckInput = Static<typeof ContainerImageCheckRequest>;

/** The reference answers an empty object: what is wrong is 400. */
export const Checked = named('Checked', Type.Object({}));
