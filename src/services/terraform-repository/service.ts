import path from 'node:path';
import type { Static } from 'typebox';
import { badRequest, invalidField } from '#kernel/errors.ts';
import type { UserFile } from '#kernel/parsing/index.ts';
import type { Context } from '#platform/context.ts';
import { checkRelative, toGitSource, type GitRepositoryInput, type GitSource } from '#services/sources/git.ts';
import {
  addressOf,
  readingGiven,
  type RepositoryAddress,
  type RepositoryReader,
} from '#services/sources/repository.ts';
import type { TfVarsListRequest } from '#services/terraform-repository/schema.ts';
import { structuredNamesIn, valuesIn, variablesOf } from '#services/terraform-repository/variables.ts';

/** Maximum number of files that are fetched; a module has fewer. */
const MAX_FILES = 50;
const AT_A_TIME = 4;

/** Read of a repository in the name of an organization. */
export interface Reading {
  context: Context;
  organizationId: string;
  repositories: RepositoryReader;
  signal: AbortSignal;
}

/** Lists the variables that the Terraform module in a folder of a repository declares. Files of folders below are left out. */
export async function parseVariables(reading: Reading, input: GitRepositoryInput) {
  const { address, root } = await locate(reading, input);
  const paths = (await listFiles(reading, address)).filter((file) => isOfModule(file, root));
  return { results: await variablesOf(reading.organizationId, await readFiles(reading, address, paths)) };
}

/** Lists the variables of a module that take expressions. They are read from the files at the head of the source's branch. */
export async function structuredVariables(
  repositories: RepositoryReader,
  organizationId: string,
  source: GitSource,
): Promise<Set<string>> {
  const address = addressOf(organizationId, source, new AbortController().signal);
  const root = rootOf(source);
  const paths = (await repositories.listFiles(address)).filter((file) => isOfModule(file, root)).slice(0, MAX_FILES);
  const files = await Promise.all(
    paths.map(async (path) => ({ name: path, text: (await repositories.readFile({ ...address, path })) ?? '' })),
  );
  return new Set(await structuredNamesIn(organizationId, files));
}

/** Lists files of variables with their values: those found in the folder and below it, or the named ones. */
export async function listVariableFiles(reading: Reading, input: Static<typeof TfVarsListRequest>) {
  const { address, root } = await locate(reading, input.git_repository);
  const all = await listFiles(reading, address);
  const paths = input.mode.type === 'AutoDiscover' ? discover(all, root) : choose(all, root, input.mode.paths);
  const files = await readFiles(reading, address, paths);
  const results = [];
  for (const file of files)
    results.push({ source: file.name, variables: await valuesIn(reading.organizationId, file) });
  return { results };
}

const discover = (all: string[], root: string): string[] =>
  all.filter((file) => isBelow(file, root) && !file.includes('.terraform/') && /\.tfvars(\.json)?$/.test(file));

function choose(all: string[], root: string, wanted: string[] | undefined): string[] {
  if (!wanted) throw invalidField('mode.paths', 'is required with SpecificPaths');
  return wanted.map((given, at) => {
    const field = `mode.paths[${at}]`;
    const plain = path.posix.normalize(checkRelative(given, field).replace(/^\/+/, ''));
    const found = [plain, path.posix.join(root, plain)].find((file) => all.includes(file));
    if (!found) throw invalidField(field, `names no file of the repository: ${given}`);
    return found;
  });
}

async function locate({ context, organizationId, signal }: Reading, input: GitRepositoryInput) {
  const source = await toGitSource(context, { organizationId }, input, null);
  return {
    address: addressOf(organizationId, source, signal),
    root: rootOf(source),
  };
}

const rootOf = (source: GitSource): string =>
  path.posix.normalize(source.root_path.replace(/^\/+/, '') || '.').replace(/\/$/, '');

/** Tells whether a file belongs to a module; those of folders below do not. */
const isOfModule = (file: string, root: string): boolean =>
  path.posix.dirname(file) === root && /\.tf(\.json)?$/.test(file);

const isBelow = (file: string, folder: string): boolean => folder === '.' || file.startsWith(`${folder}/`);

const listFiles = ({ repositories }: Reading, address: RepositoryAddress): Promise<string[]> =>
  readingGiven(repositories.listFiles(address));

async function readFiles({ repositories }: Reading, address: RepositoryAddress, paths: string[]) {
  if (paths.length > MAX_FILES)
    throw badRequest(`${paths.length} files are too many: at most ${MAX_FILES} are read. Name a deeper root_path.`);
  const files: UserFile[] = [];
  for (let from = 0; from < paths.length; from += AT_A_TIME) {
    const batch = paths.slice(from, from + AT_A_TIME);
    const texts = await Promise.all(
      batch.map((file) => readingGiven(repositories.readFile({ ...address, path: file }))),
    );
    batch.forEach((file, at) => files.push({ name: file, text: texts[at] ?? '' }));
  }
  return files;
}
