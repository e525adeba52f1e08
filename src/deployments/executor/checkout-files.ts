import { open, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readFileOf } from '#kernel/parsing/index.ts';
import type { BuildSpec } from '#runtimes/runtime.ts';
import type { CheckoutFiles } from '#deployments/model/kind.ts';

/** Limit for any file that is read of a checkout; the parsers of Dockerfiles take less. */
const MAX_BYTES = 1024 * 1024;

/**
 * Returns the text of a file of a checkout. Links that leave the checkout count as missing. Throws Error with `missing`, or for a file that
 * is too large.
 */
export async function readOf(
  directory: string,
  file: string,
  missing = `There is no file ${file} in the repository.`,
): Promise<string> {
  const text = await readIfThere(directory, file);
  if (text === null) throw new Error(missing);
  return text;
}

/** Returns the files of a checkout, for kinds that make something of them. */
export const filesOf = (directory: string): CheckoutFiles => ({
  read: (file) => readIfThere(directory, file),
  list: async (folder) => {
    const real = await insideOf(directory, folder);
    const entries = real === null ? [] : await readdir(real, { withFileTypes: true }).catch(none([]));
    return entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
  },
});

async function readIfThere(directory: string, file: string): Promise<string | null> {
  const real = await insideOf(directory, file);
  const handle = real === null ? null : await open(real).catch(none(null));
  if (handle === null) return null;
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) return null;
    if (stat.size > MAX_BYTES) throw new Error(`${file} is larger than ${MAX_BYTES / 1024} KiB.`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Returns the path of a file or folder behind its links; null if it is not there, or not in the checkout. */
async function insideOf(directory: string, file: string): Promise<string | null> {
  const real = await realpath(path.join(directory, file)).catch(none(null));
  const top = await realpath(directory);
  return real !== null && `${real}${path.sep}`.startsWith(`${top}${path.sep}`) ? real : null;
}

/** Answers in place of an error that says a path leads to nothing; throws the others. */
const none =
  <T>(answer: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes(error.code ?? '')) return answer;
    throw error;
  };

/** Writes a generated file into a checkout, in place of the repository's own: a link there is replaced, not followed. */
export async function writeOwn(directory: string, file: string, text: string): Promise<void> {
  const target = path.join(directory, file);
  const folder = await realpath(path.dirname(target));
  if (`${folder}${path.sep}`.startsWith(`${await realpath(directory)}${path.sep}`)) {
    await rm(target, { force: true, recursive: true });
    return writeFile(target, text, { flag: 'wx' });
  }
  throw new Error(`${path.basename(file)} cannot be written: its folder leads out of the repository.`);
}

/**
 * Returns the variables that a Dockerfile declares, by ARG or as a secret of a RUN, and no others: each argument would be a reason to build
 * anew. `owner` is the organization whose file it is.
 */
export async function declaredVariables(
  owner: string,
  dockerfile: { name: string; text: string },
  variables: Record<string, string>,
): Promise<Pick<BuildSpec, 'arguments' | 'secretMounts'>> {
  const { args = [], secrets = [] } = (await readFileOf(owner, 'dockerfile-facts', dockerfile)) ?? {};
  const those = (names: string[]) =>
    Object.fromEntries(names.filter((name) => Object.hasOwn(variables, name)).map((name) => [name, variables[name]!]));
  return { arguments: those(args), secretMounts: those(secrets) };
}
