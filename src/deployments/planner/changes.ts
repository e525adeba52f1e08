import { canonicalJson } from '#kernel/canonical-json.ts';
import type { Commit, LastRelease, ResolvedService, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import {
  effectiveRecords,
  typeOf,
  type FrozenVariable,
  type VariableDefinition,
} from '#deployments/model/variables.ts';

/** A part of the configuration that differs; `from` or `to` is left out where there is none. */
export interface SettingChange {
  /** Where it stands (`ports[0].internal_port`). */
  path: string;
  from?: unknown;
  to?: unknown;
}

/** A variable or secret whose effective record differs. Values are left out of secrets. */
export interface VariableChange {
  key: string;
  change: 'ADDED' | 'REMOVED' | 'CHANGED';
  isSecret: boolean;
  /** Where its value comes from: the record that counts, of then where it is removed. */
  scope: VariableDefinition['scope'];
  type: ReturnType<typeof typeOf>;
  from?: string;
  to?: string;
}

/** What of a service would differ from its last release. */
export interface ServiceChanges {
  commit: { from: Commit | null; to: Commit | null } | null;
  settings: SettingChange[];
  variables: VariableChange[];
}

/** Compares a service's snapshot with what was last released of it; without a release everything is new, and only variables are listed. */
export function changesOf(
  service: ServiceSnapshot,
  resolved: ResolvedService,
  last: { release: LastRelease | null; snapshot: ServiceSnapshot | null },
): ServiceChanges {
  const before = last.snapshot;
  const [from, to] = [last.release?.commit ?? null, resolved.commit ?? null];
  return {
    commit: from?.id === to?.id ? null : { from, to },
    settings: before ? settingChanges(configurationOf(before), configurationOf(service)) : [],
    variables: variableChanges((before?.variables ?? []) as FrozenVariable[], service.variables as FrozenVariable[]),
  };
}

/** What of a snapshot is configuration besides variables. */
const configurationOf = ({ name, spec, advancedSettings, customDomains, stage }: ServiceSnapshot) => ({
  ...spec,
  name,
  stage: stage.name,
  advanced_settings: advancedSettings,
  custom_domains: customDomains,
});

/** Leaves that differ, by their paths. Elements of a list are compared by their places. */
export function settingChanges(from: unknown, to: unknown, path = ''): SettingChange[] {
  if (isBranch(from) && isBranch(to) && Array.isArray(from) === Array.isArray(to)) {
    const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])];
    return keys.flatMap((key) => settingChanges(at(from, key), at(to, key), joined(path, key, Array.isArray(to))));
  }
  if (Object.is(from, to) || canonicalJson(from) === canonicalJson(to)) return [];
  return [{ path, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }];
}

const isBranch = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const at = (value: object, key: string): unknown =>
  Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
const joined = (path: string, key: string, isList: boolean): string =>
  isList ? `${path}[${key}]` : path ? `${path}.${key}` : key;

function variableChanges(before: FrozenVariable[], after: FrozenVariable[]): VariableChange[] {
  const [was, is] = [effectiveRecords(before), effectiveRecords(after)];
  const sources = { was: byId(before), is: byId(after) };
  return [...new Set([...was.keys(), ...is.keys()])].sort().flatMap((key) => {
    const [from, to] = [was.get(key), is.get(key)];
    if (from && to && contentOf(from, sources.was) === contentOf(to, sources.is)) return [];
    const record = (to ?? from)!;
    const isSecret = hidesValue(from, sources.was) || hidesValue(to, sources.is);
    const [old, now] = [from && plainValueOf(from, sources.was), to && plainValueOf(to, sources.is)];
    return [
      {
        key,
        change: !from ? 'ADDED' : !to ? 'REMOVED' : 'CHANGED',
        isSecret,
        scope: record.scope,
        type: typeOf(record),
        ...(isSecret || old === undefined ? {} : { from: old }),
        ...(isSecret || now === undefined ? {} : { to: now }),
      } satisfies VariableChange,
    ];
  });
}

const byId = (records: FrozenVariable[]) => new Map(records.map((record) => [record.id, record]));

/** An alias has the value of its source. */
const holderOf = (record: FrozenVariable, records: Map<string, FrozenVariable>): FrozenVariable =>
  (record.aliases !== undefined && records.get(record.aliases)) || record;

const plainValueOf = (record: FrozenVariable, records: Map<string, FrozenVariable>): string | undefined =>
  holderOf(record, records).value;

const hidesValue = (record: FrozenVariable | undefined, records: Map<string, FrozenVariable>): boolean => {
  if (!record) return false;
  const holder = holderOf(record, records);
  return (record.isSecret ?? false) || (holder.isSecret ?? false) || holder.sealed !== undefined;
};

/** What makes two records the same to a program: value or version of a secret, and where it is put. */
function contentOf(record: FrozenVariable, records: Map<string, FrozenVariable>): string {
  const { value, secret, sealed, external } = holderOf(record, records);
  return canonicalJson([value, secret, sealed, external, record.mountPath, record.interpolateFile]);
}
