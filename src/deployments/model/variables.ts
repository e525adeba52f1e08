import { kindsWith } from '#kernel/kinds.ts';
import type { SealedValue } from '#deployments/model/built-in-variables.ts';
import { expand, type Expanded, type Node, type VariableProblem } from '#deployments/model/interpolate.ts';

/** `scope` of variables and secrets (docs/contributing/rules.md, *Variable*). */
export const RECORD_SCOPES = [
  ...kindsWith('variables'),
  'BUILT_IN' as const,
  'ENVIRONMENT' as const,
  'PROJECT' as const,
];
export type RecordScope = (typeof RECORD_SCOPES)[number];

/** `variable_type` of variables and secrets (docs/contributing/rules.md, *Variable*). */
export const VARIABLE_TYPES = [
  'VALUE',
  'ALIAS',
  'OVERRIDE',
  'BUILT_IN',
  'FILE',
  'EXTERNAL_SECRET',
  'FILE_EXTERNAL_SECRET',
] as const;
export type VariableType = (typeof VARIABLE_TYPES)[number];

/** Secret of a secret manager. */
export interface ExternalSecret {
  /** Id of the secret manager access. */
  access: string;
  name: string;
  /** Person who chose the access and the name: a deployment reads with their right. Absent from variables of earlier releases. */
  chosenBy?: string;
  /** Token that they chose it with; absent where a session did. */
  chosenWith?: string;
}

/** Properties of a variable or secret that rules depend on. Absent properties don't apply, which keeps snapshots small. */
export interface VariableDefinition {
  id: string;
  key: string;
  scope: RecordScope;
  isSecret?: boolean;
  /** Path at which the value is mounted as a file; of the record itself, not inherited. */
  mountPath?: string;
  /** True if `{{KEY}}` is replaced within the file. */
  interpolateFile?: boolean;
  /** Id of the record that it overrides. */
  overrides?: string;
  /** Id of the record that it is an alias of. */
  aliases?: string;
  /** The value lies in a secret manager, under this name. */
  external?: ExternalSecret;
  /** True if its key gets no value, nor what names it (withheld-secrets.ts). */
  isWithheld?: true;
}

/** A variable as snapshots keep it: unexpanded, secrets by version. */
export interface FrozenVariable extends VariableDefinition {
  /** Plain value; left out of secrets, aliases and external secrets. */
  value?: string;
  secret?: { id: string; version: number };
  sealed?: SealedValue;
}

/** A variable whose value is at hand; null for aliases, and for external secrets that were not read. */
export interface VariableRecord extends VariableDefinition {
  value: string | null;
}

interface ResolvedVariable {
  key: string;
  /** Value; for a file variable its path, which is where the program finds the value. */
  value: string;
  /** True if it is a secret, or a secret was put into it. */
  isSecret: boolean;
  origin: Origin;
}

/** Origin of a value: the record that won, and its type. */
interface Origin {
  scope: RecordScope;
  id: string;
  via: VariableType;
}

/** Variables and files that a service gets. Order is by key and by path, whatever the order of the records. */
export interface ResolvedVariables {
  variables: ResolvedVariable[];
  files: { path: string; content: string }[];
  /** For the log of the deployment. */
  warnings: string[];
  /** Values to mask in logs. */
  secrets: string[];
  /** Keys without a value, because they hold or name a secret that is withheld. */
  withheld: string[];
}

/** Error for variables that can't be resolved: a cycle, a source that is gone, an external secret, too much. The message names the keys. */
export class VariableError extends Error {
  readonly problems: VariableProblem[];
  constructor(problems: VariableProblem[]) {
    super(problems.map((problem) => problem.message).join('\n'));
    this.name = 'VariableError';
    this.problems = problems;
  }
}

const RANKS: Partial<Record<RecordScope, number>> = { BUILT_IN: 0, PROJECT: 1, ENVIRONMENT: 2 };
const SERVICE_RANK = 3;

/** Returns the depth of a scope: BUILT_IN 0, PROJECT 1, ENVIRONMENT 2, every service scope 3 (docs/contributing/rules.md 29). */
export const rankOf = (scope: RecordScope): number => RANKS[scope] ?? SERVICE_RANK;

/** Returns whether a record in `lower` may override one in `higher` (docs/contributing/rules.md, *Hierarchy* rule 2). */
export const isStrictlyLower = (lower: RecordScope, higher: RecordScope): boolean => rankOf(lower) > rankOf(higher);

/** Returns the type of a record: overrides and aliases stay that, whatever their source is (docs/contributing/rules.md 34). */
export function typeOf(record: VariableDefinition): VariableType {
  if (record.scope === 'BUILT_IN') return 'BUILT_IN';
  if (record.overrides !== undefined) return 'OVERRIDE';
  if (record.aliases !== undefined) return 'ALIAS';
  if (record.external !== undefined) return record.mountPath === undefined ? 'EXTERNAL_SECRET' : 'FILE_EXTERNAL_SECRET';
  return record.mountPath === undefined ? 'VALUE' : 'FILE';
}

/** Returns the record that an override or alias refers to; undefined if it refers to none, or to none of the given records. */
export const sourceOf = <R extends VariableDefinition>(record: R, byId: ReadonlyMap<string, R>): R | undefined =>
  byId.get(record.overrides ?? record.aliases ?? '');

/** Returns the path of the file that a record makes, its own or the one that it inherits (docs/contributing/rules.md 34). */
export function mountPathOf<R extends VariableDefinition>(record: R, byId: ReadonlyMap<string, R>): string | undefined {
  const seen = new Set<R>();
  for (let at: R | undefined = record; at && !seen.has(at); at = sourceOf(at, byId)) {
    if (at.mountPath !== undefined) return at.mountPath;
    seen.add(at);
  }
  return undefined;
}

/** Returns the record that holds the value: an alias's source, else the record itself. Undefined if the source is gone. */
export const valueHolderOf = <R extends VariableDefinition>(record: R, byId: ReadonlyMap<string, R>): R | undefined =>
  record.aliases === undefined ? record : byId.get(record.aliases);

/**
 * Returns the effective record of each key: the lowest scope wins, and a secret over a variable of the same scope
 * (docs/contributing/rules.md 29, 32). Further equals can't be stored; the id decides between them, so that the result doesn't depend on
 * the order.
 */
export function effectiveRecords<R extends VariableDefinition>(records: readonly R[]): Map<string, R> {
  const effective = new Map<string, R>();
  for (const record of records) {
    const present = effective.get(record.key);
    if (!present || beats(record, present)) effective.set(record.key, record);
  }
  return new Map([...effective].sort(([a], [b]) => compare(a, b)));
}

function beats(one: VariableDefinition, other: VariableDefinition): boolean {
  const ranks = rankOf(one.scope) - rankOf(other.scope);
  if (ranks !== 0) return ranks > 0;
  if ((one.isSecret ?? false) !== (other.isSecret ?? false)) return one.isSecret ?? false;
  return one.id < other.id;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Resolved variables of a service, with problems kept by key instead of thrown. */
export interface Examination extends ResolvedVariables {
  files: { path: string; content: string; isSecret: boolean }[];
  /** Keys without a value, and why. */
  failures: Map<string, VariableProblem>;
}

/**
 * Resolves the variables that a service sees: one value for each key, or one problem. Needs all records that the service sees (its own, its
 * environment's, its project's and the built-in ones), the overridden ones included.
 */
export function examineVariables(records: readonly VariableRecord[]): Examination {
  const byId = new Map(records.map((record) => [record.id, record]));
  const effective = effectiveRecords(records);
  const failures = new Map<string, VariableProblem>();
  const nodes = new Map<string, Node>();
  const contents = new Map<string, Node>();
  for (const [key, record] of effective) {
    const holder = valueHolderOf(record, byId);
    const path = mountPathOf(record, byId);
    const problem = problemOf(record, holder);
    if (problem) failures.set(key, problem);
    const isSecret = (record.isSecret ?? false) || holder?.external !== undefined;
    const text = holder?.value ?? '';
    const isWithheld = (record.isWithheld ?? false) || (holder?.isWithheld ?? false);
    if (path === undefined) nodes.set(key, { text, isSecret, isWithheld, verbatim: problem !== undefined });
    else {
      nodes.set(key, { text: path, isSecret: false, isWithheld, verbatim: true });
      if (!problem) contents.set(key, { text, isSecret, isWithheld, verbatim: !record.interpolateFile });
    }
  }
  const { values, inside, warnings } = expand(nodes, contents, failures);
  const withheld = new Set([...values, ...inside].flatMap(([key, one]) => (one.isWithheld ? [key] : [])));
  for (const key of withheld) {
    values.delete(key);
    inside.delete(key);
  }
  const files = placeFiles(effective, byId, inside, failures, warnings);
  const variables = [...values].map(([key, { text, isSecret }]) => {
    const record = effective.get(key)!;
    return { key, value: text, isSecret, origin: { scope: record.scope, id: record.id, via: typeOf(record) } };
  });
  const secrets = [...values.values(), ...inside.values()].filter((value) => value.isSecret && value.text !== '');
  return {
    variables: variables.filter(({ key }) => !failures.has(key)),
    files,
    warnings: [...new Set(warnings)].sort(compare),
    secrets: [...new Set(secrets.map((value) => value.text))].sort(compare),
    withheld: [...withheld].sort(compare),
    failures,
  };
}

/** Returns the variables of a service for its deployment. Throws VariableError, which names every problem once. */
export function resolveVariables(records: readonly VariableRecord[]): ResolvedVariables {
  const { failures, ...resolved } = examineVariables(records);
  if (failures.size > 0) throw new VariableError([...new Set(failures.values())]);
  return { ...resolved, files: resolved.files.map(({ path, content }) => ({ path, content })) };
}

function problemOf(record: VariableRecord, holder: VariableRecord | undefined): VariableProblem | undefined {
  const { key } = record;
  const refused = (code: VariableProblem['code'], message: string) => ({ code, keys: [key], message });
  if (!holder)
    return refused(
      'SOURCE_MISSING',
      `${key} is an alias of something that isn't there any more: delete the alias, or bring its source back.`,
    );
  if (holder !== record && holder.aliases !== undefined)
    return refused('SOURCE_MISSING', `${key} is an alias of the alias ${holder.key}: make it one of what that is of.`);
  if (holder.external && holder.value === null)
    return refused(
      'EXTERNAL_SECRET',
      `${key} is the external secret "${holder.external.name}", and its secret manager can't be asked for it.`,
    );
  return undefined;
}

/** Returns the files by path. If two keys name one path, the lower scope's file wins; equals with different contents are a problem. */
function placeFiles(
  effective: ReadonlyMap<string, VariableRecord>,
  byId: ReadonlyMap<string, VariableRecord>,
  contents: ReadonlyMap<string, Expanded>,
  failures: Map<string, VariableProblem>,
  warnings: string[],
): Examination['files'] {
  const byPath = new Map<string, { key: string; content: string; isSecret: boolean; rank: number }[]>();
  for (const [key, { text: content, isSecret }] of contents) {
    const record = effective.get(key)!;
    const path = mountPathOf(record, byId)!;
    byPath.set(path, [...(byPath.get(path) ?? []), { key, content, isSecret, rank: rankOf(record.scope) }]);
  }
  return [...byPath]
    .sort(([a], [b]) => compare(a, b))
    .flatMap(([path, claims]) => {
      const lowest = Math.max(...claims.map((claim) => claim.rank));
      const winners = claims.filter((claim) => claim.rank === lowest);
      const keys = claims.map((claim) => claim.key);
      const content = winners[0]!.content;
      if (winners.some((claim) => claim.content !== content)) {
        const problem: VariableProblem = {
          code: 'SAME_PATH',
          keys,
          message: `${keys.join(' and ')} are different files with the path ${path}: give one of them another mount_path.`,
        };
        for (const key of keys) failures.set(key, problem);
        return [];
      }
      if (claims.some((claim) => claim.content !== content))
        warnings.push(
          `${keys.join(' and ')} have the path ${path}: the file is ${winners[0]!.key}'s, of the lower scope.`,
        );
      return [{ path, content, isSecret: winners.some((claim) => claim.isSecret) }];
    });
}
