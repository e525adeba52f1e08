import { canonicalJson } from '#kernel/canonical-json.ts';
import type { Commit, LastRelease, ResolvedService, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import {
  effectiveRecords,
  typeOf,
  type FrozenVariable,
  type VariableDefinition,
} from '#deployments/model/variables.ts';

/** Part of the configuration that differs; `from` or `to` is left out if there is none. */
interface SettingChange {
  /** Path of the setting (`ports[0].internal_port`). */
  path: string;
  from?: unknown;
  to?: unknown;
}

/** Variable or secret whose effective record differs. Values are left out of secrets. */
interface VariableChange {
  key: string;
  change: 'ADDED' | 'REMOVED' | 'CHANGED';
  isSecret: boolean;
  /** Scope of the effective record; for a removed variable, of the record that was effective then. */
  scope: VariableDefinition['scope'];
  type: ReturnType<typeof typeOf>;
  from?: string;
  to?: string;
}

/** Differences between a service and its last release. */
export interface ServiceChanges {
  commit: { from: Commit | null; to: Commit | null } | null;
  settings: SettingChange[];
  variables: VariableChange[];
}

/**
 * Compares a service's snapshot with its last release. Without a release everything is new: only variables are listed then, and none of the
 * built-in ones. `shared` compares the variables that all services of the environment see.
 */
export function changesOf(
  service: ServiceSnapshot,
  resolved: ResolvedService,
  last: { release: LastRelease | null; snapshot: ServiceSnapshot | null },
  shared: SharedComparison,
): ServiceChanges {
  const before = last.snapshot;
  const [from, to] = [last.release?.commit ?? null, resolved.commit ?? null];
  const variables = variableChanges(
    { ...shared.before, own: before?.variables ?? [] },
    { ...shared.after, own: service.variables },
    shared.keys,
  );
  return {
    commit: from?.id === to?.id ? null : { from, to },
    settings: before ? settingChanges(configurationOf(before), configurationOf(service)) : [],
    variables: before ? variables : variables.filter(({ type }) => type !== 'BUILT_IN'),
  };
}

/** Variables that services of an environment share: the effective ones by key, and all by id. */
interface SharedVariables {
  effective: Map<string, FrozenVariable>;
  byId: Map<string, FrozenVariable>;
}

/** Variables that all services of an environment see, then and now, and the keys that differ. Computed once for all services. */
export interface SharedComparison {
  before: SharedVariables;
  after: SharedVariables;
  keys: string[];
}

/** Compares the variables that all services of an environment see: those frozen with their last release, and those of now. */
export function compareShared(before: FrozenVariable[], after: FrozenVariable[]): SharedComparison {
  const [was, is] = [before, after].map((records) => ({
    effective: effectiveRecords(records),
    byId: byId(records),
  })) as [SharedVariables, SharedVariables];
  const contentIn = ({ effective, byId: records }: SharedVariables, key: string) =>
    effective.has(key) ? contentOf(effective.get(key)!, records) : undefined;
  const keys = [...new Set([...was.effective.keys(), ...is.effective.keys()])];
  return { before: was, after: is, keys: keys.filter((key) => contentIn(was, key) !== contentIn(is, key)) };
}

/** Returns the configuration in a snapshot, without its variables. */
const configurationOf = ({
  name,
  spec,
  advancedSettings,
  customDomains,
  certificateDomains,
  stage,
}: ServiceSnapshot) => ({
  ...(spec as object),
  name,
  stage: stage.name,
  advanced_settings: advancedSettings,
  custom_domains: customDomains,
  ...(certificateDomains ? { certificates: certificateDomains } : {}),
});

/** Compares two configurations and returns the leaves that differ, by their paths. Elements of a list are compared by their positions. */
function settingChanges(from: unknown, to: unknown, path = ''): SettingChange[] {
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

/** Variables that a service sees: its own over the shared ones. */
type Seen = SharedVariables & { own: FrozenVariable[] };

/** Compares the keys of `shared` that differ and the keys of the service itself: all others are the same. */
function variableChanges(before: Seen, after: Seen, shared: string[]): VariableChange[] {
  const [was, is] = [ownOver(before), ownOver(after)];
  const sources = { was: sourcesOf(before), is: sourcesOf(after) };
  const keys = new Set([...shared, ...before.own.map(({ key }) => key), ...after.own.map(({ key }) => key)]);
  return [...keys].sort().flatMap((key) => {
    const [from, to] = [was(key), is(key)];
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

/** Returns a function that finds the effective record of a key. */
function ownOver({ effective, own }: Seen): (key: string) => FrozenVariable | undefined {
  const ofService = Map.groupBy(own, (record) => record.key);
  return (key) => {
    const present = effective.get(key);
    return effectiveRecords([...(ofService.get(key) ?? []), ...(present ? [present] : [])]).get(key);
  };
}

/** Records by their ids. */
type Records = Pick<ReadonlyMap<string, FrozenVariable>, 'get'>;

const byId = (records: FrozenVariable[]) => new Map(records.map((record) => [record.id, record]));

function sourcesOf({ byId: shared, own }: Seen): Records {
  const ofService = byId(own);
  return { get: (id) => ofService.get(id) ?? shared.get(id) };
}

/** Returns the record that holds the value: for an alias its source. */
const holderOf = (record: FrozenVariable, records: Records): FrozenVariable =>
  (record.aliases !== undefined && records.get(record.aliases)) || record;

const plainValueOf = (record: FrozenVariable, records: Records): string | undefined => holderOf(record, records).value;

const hidesValue = (record: FrozenVariable | undefined, records: Records): boolean => {
  if (!record) return false;
  const holder = holderOf(record, records);
  return (record.isSecret ?? false) || (holder.isSecret ?? false) || holder.sealed !== undefined;
};

/** Returns a text that is equal for two records if a program sees no difference: value or secret version, and mount. */
function contentOf(record: FrozenVariable, records: Records): string {
  const { value, secret, sealed, external } = holderOf(record, records);
  // Another chooser of the same secret changes nothing of the release.
  const upstream = external && [external.access, external.name];
  return canonicalJson([value, secret, sealed, upstream, record.mountPath, record.interpolateFile]);
}
