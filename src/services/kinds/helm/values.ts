import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { ValuesInput } from '#services/kinds/helm/schema.ts';
import { checkRelative, toGitSource, toGitView, type GitSource, type ResolvedCommit } from '#services/sources/git.ts';

/** Overrides of a chart's values, as stored. */
export interface ValuesOverride {
  set: string[][];
  set_string: string[][];
  set_json: string[][];
  file: {
    raw: { values: { name: string; content: string }[] } | null;
    git: { git_repository: GitSource; paths: string[] } | null;
  } | null;
}

export const NO_VALUES: ValuesOverride = { set: [], set_string: [], set_json: [], file: null };

/** Reads the values of a body, which replace all present ones. Throws 400 that names the field. */
export async function toValues(
  context: Context,
  place: { organizationId: string },
  input: ValuesInput,
  present: ValuesOverride,
): Promise<ValuesOverride> {
  const set_json = toPairs(input.set_json, 'set_json');
  set_json.forEach(([, value], index) => checkJson(value!, `values_override.set_json[${index}][1]`));
  const { raw, git } = input.file ?? {};
  const file = {
    raw: raw ? { values: toRawFiles(raw.values ?? []) } : null,
    git: git ? await toGitFiles(context, place, git, present.file?.git ?? null) : null,
  };
  return {
    set: toPairs(input.set, 'set'),
    set_string: toPairs(input.set_string, 'set_string'),
    set_json,
    file: file.raw || file.git ? file : null,
  };
}

const hasControls = (text: string): boolean => /\p{Cc}/u.test(text);

function toPairs(pairs: string[][] | undefined, name: string): string[][] {
  return (pairs ?? []).map((pair, index) => {
    const field = `values_override.${name}[${index}]`;
    if (pair.length !== 2) throw invalidField(field, 'must be a pair of a key and a value: ["image.tag", "1.4.0"]');
    const key = pair[0]!;
    if (key.trim() === '' || hasControls(key)) throw invalidField(`${field}[0]`, 'must be a key, such as image.tag');
    return pair;
  });
}

/**
 * Checks that a value is JSON. A value with a reference to a variable can be checked only after its replacement at deployment, so that it
 * is accepted here.
 */
function checkJson(value: string, field: string): void {
  if (value.includes('{{')) return;
  try {
    JSON.parse(value);
  } catch {
    throw invalidField(field, 'must be JSON: {"limits": {"memory": "512Mi"}}');
  }
}

const FILE_NAME = /^[A-Za-z0-9_][\w.-]*$/;

function toRawFiles(values: { name?: string; content?: string }[]): { name: string; content: string }[] {
  return values.map(({ name, content }, index) => {
    const field = `values_override.file.raw.values[${index}]`;
    if (name === undefined) throw invalidField(`${field}.name`, 'is required');
    if (!FILE_NAME.test(name)) throw invalidField(`${field}.name`, 'must be the name of a file, such as values.yaml');
    if (values.findIndex((other) => other.name === name) !== index)
      throw invalidField(`${field}.name`, `${name} stands there twice`);
    if (content === undefined) throw invalidField(`${field}.content`, 'is required');
    return { name, content };
  });
}

type GitFilesInput = NonNullable<NonNullable<ValuesInput['file']>['git']>;

async function toGitFiles(
  context: Context,
  place: { organizationId: string },
  { git_repository, paths }: GitFilesInput,
  present: { git_repository: GitSource } | null,
) {
  const field = 'values_override.file.git';
  if (paths.length === 0) throw invalidField(`${field}.paths`, 'must name at least one file');
  return {
    git_repository: await toGitSource(
      context,
      place,
      git_repository,
      present?.git_repository ?? null,
      `${field}.git_repository`,
    ),
    paths: paths.map((path, index) => checkRelative(path, `${field}.paths[${index}]`)),
  };
}

/** Makes the answer of the values; references to variables are not replaced. */
export const toValuesView = (
  { file, ...pairs }: ValuesOverride,
  commit: ResolvedCommit | undefined,
  tokenName: string | null,
) => ({
  ...pairs,
  file: file && {
    raw: file.raw,
    git: file.git && {
      git_repository: toGitView(file.git.git_repository, commit, tokenName),
      paths: file.git.paths,
    },
  },
});
