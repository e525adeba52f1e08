import path from 'node:path';
import { badRequest, invalidField } from '#kernel/errors.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import type { Context } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { locateImage, openRegistry, registryProblem } from '#platform/oci/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import type {
  ContainerImageCheckInput,
  DockerfileGenerationInput,
} from '#services/capabilities/environment/checks/schema.ts';
import { checkRelative, toGitSource, type GitRepositoryInput, type GitSource } from '#services/sources/git.ts';
import type { RegistryFinder } from '#services/images/image-name.ts';
import {
  filesOfPaths,
  forApplication,
  forJob,
  hasDockerfile,
  isMachine,
  USUAL_PORT,
} from '#services/images/made-dockerfile.ts';
import { DOCKERFILE, makeDockerfile, RecognitionError } from '#services/recognition/index.ts';
import { addressOf, readingGiven, type RepositoryFiles, type RepositoryReader } from '#services/sources/repository.ts';

export interface CheckNeeds {
  repositories: RepositoryReader;
  findRegistry: RegistryFinder;
}

type CheckContext = Context & { target: EnvironmentTarget; signal: AbortSignal };

const MAX_FILE = 256 * 1024;

/** Reads a Dockerfile and answers what it needs. 400 if there is none at that path. */
export async function checkDockerfile(
  context: CheckContext,
  needs: CheckNeeds,
  input: { git_repository: GitRepositoryInput; dockerfile_path: string },
) {
  const source = await sourceOf(context, input.git_repository);
  const file = inRepository(source, input.dockerfile_path, 'dockerfile_path');
  const text = await readFile(context, needs, source, file, 'dockerfile_path');
  const { organizationId } = context.target;
  const facts = await readFileOf(organizationId, 'dockerfile-facts', { name: file, text }).catch(
    naming('dockerfile_path'),
  );
  if (!facts) throw invalidField('dockerfile_path', `${file} is not a Dockerfile: it has no FROM`);
  return { dockerfile_path: input.dockerfile_path, arg: facts.args, repositories: facts.repositories };
}

/** Makes the Dockerfile of a repository without one, for the cluster of the environment. 400 if it is not recognised. */
export async function generateDockerfile(context: CheckContext, needs: CheckNeeds, input: DockerfileGenerationInput) {
  const { port, job_type: jobType, has_command: hasCommand = false } = input;
  if (jobType && port !== undefined) throw invalidField('port', 'is not allowed here: a job has no port');
  const source = await sourceOf(context, input.git_repository);
  const { organizationId: owner, runtime } = context.target;
  const address = addressOf(owner, source, context.signal);
  const { root_path: rootPath } = source;
  const service = jobType
    ? forJob(hasCommand, jobType === 'LIFECYCLE')
    : forApplication(port ?? USUAL_PORT, hasCommand);
  const options = { ...service, owner, rootPath, variables: [], isMachine: isMachine(runtime) };
  const own = path.posix.join('/', rootPath, DOCKERFILE).slice(1);
  const read = async (repository: RepositoryFiles) => {
    const files = filesOfPaths(repository);
    const used = (await hasDockerfile(files, owner, rootPath)) ? own : null;
    const made = await makeDockerfile(files, options).catch((error: unknown) => {
      if (!(error instanceof RecognitionError)) throw error;
      const before = used === null ? '' : `Services use ${used}, which the repository has; none can be made. `;
      throw invalidField('git_repository', before + error.message);
    });
    return { used, made };
  };
  const { used, made } = await readingGiven(needs.repositories.withFiles(address, read));
  return {
    language: made.language,
    recognised_by: made.because,
    dockerfile: made.text,
    dockerignore: made.ignore,
    root_path: made.rootPath,
    dockerfile_path: made.dockerfilePath,
    used_dockerfile: used,
  };
}

/** 400 naming each file that the branch has not. */
export async function checkGitFiles(
  context: CheckContext,
  needs: CheckNeeds,
  input: { git_repository: GitRepositoryInput; files: string[] },
) {
  const source = await sourceOf(context, input.git_repository);
  const wanted = input.files.map((file, index) => inRepository(source, file, `files[${index}]`));
  const address = addressOf(context.target.organizationId, source, context.signal);
  const there = new Set(await readingGiven(needs.repositories.listFiles(address)));
  const errors = wanted
    .map((file, index) => ({ file, field: `files[${index}]` }))
    .filter(({ file }) => !there.has(file))
    .map(({ file, field }) => ({ field, message: `branch ${source.branch} has no file ${file}` }));
  if (errors.length > 0) throw badRequest(errors.map((error) => `${error.field}: ${error.message}`).join('; '), errors);
  return {};
}

/** 400 unless the folder holds a Helm chart. */
export async function checkHelmChart(
  context: CheckContext,
  needs: CheckNeeds,
  input: { git_repository: GitRepositoryInput },
) {
  const field = 'git_repository.root_path';
  const source = await sourceOf(context, input.git_repository);
  const file = inRepository(source, 'Chart.yaml', field);
  const text = await readFile(context, needs, source, file, field);
  const options = { maxAliasCount: 0, plain: true };
  const { organizationId } = context.target;
  const read = await readFileOf(organizationId, 'yaml', { name: file, text }, options).catch(naming(field));
  const chart = read as Record<string, unknown> | null;
  for (const key of ['apiVersion', 'name', 'version'])
    if (typeof chart?.[key] !== 'string' || chart[key] === '')
      throw invalidField(field, `${file} is not the description of a chart: it has no ${key}`);
  return {};
}

/** 400 unless the registry has the image. */
export async function checkContainerImage(context: CheckContext, needs: CheckNeeds, input: ContainerImageCheckInput) {
  const { registry_id: registryId } = input;
  const { organizationId } = context.target;
  const http = createHttpClient({ allowedPrivateAddresses: context.settings.allowedPrivateAddresses });
  try {
    const registry = registryId ? await needs.findRegistry(context, organizationId, registryId) : undefined;
    if (registryId && !registry) throw invalidField('registry_id', 'names no container registry of this organization');
    const image = locateImage(input.image_name, input.tag, registry?.url ?? null);
    const access = { organizationId, url: image.base, credentials: registry?.credentials ?? null };
    await openRegistry(http, access, context.signal).resolveDigest(image.name, image.tag);
  } catch (error) {
    throw registryProblem(error);
  }
  return {};
}

const sourceOf = ({ target, ...context }: CheckContext, input: GitRepositoryInput): Promise<GitSource> =>
  toGitSource(context, { organizationId: target.organizationId }, input, null);

/** Path from the repository's root of a file that is named from `root_path`. */
const inRepository = (source: GitSource, file: string, field: string): string =>
  path.posix.join('/', source.root_path, checkRelative(file, field)).slice(1);

async function readFile(
  { target, signal }: CheckContext,
  needs: CheckNeeds,
  source: GitSource,
  file: string,
  field: string,
): Promise<string> {
  const address = addressOf(target.organizationId, source, signal);
  const text = await readingGiven(needs.repositories.readFile({ ...address, path: file }));
  if (text === undefined) throw invalidField(field, `branch ${source.branch} has no file ${file}`);
  if (text.length > MAX_FILE) throw invalidField(field, `${file} is larger than ${MAX_FILE / 1024} KiB`);
  return text;
}

/** Names the field of the body that leads to a file which cannot be read. */
const naming =
  (field: string) =>
  (error: unknown): never => {
    throw error instanceof ParsingError && error.kind !== 'busy' ? invalidField(field, error.message) : error;
  };
