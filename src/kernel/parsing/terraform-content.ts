import { maskOf } from '#kernel/secrets-mask.ts';
import { readTerraformState } from '#kernel/parsing/terraform-state.ts';

/** Resource of a state, without its sensitive attributes. */
export interface StateResource {
  address: string;
  type: string;
  name: string;
  provider: string;
  mode: 'managed' | 'data';
  attributes: Record<string, unknown>;
}

/** Output of the root module. */
interface StateOutput {
  name: string;
  value: unknown;
  sensitive: boolean;
}

export interface StateContent {
  serial: number;
  lineage: string;
  resources: StateResource[];
  outputs: StateOutput[];
}

interface RawState {
  version: number;
  serial: number;
  lineage: string;
  outputs?: Record<string, { value: unknown; sensitive?: boolean }>;
  resources?: RawResource[];
}

interface RawResource {
  module?: string;
  mode: string;
  type: string;
  name: string;
  provider: string;
  instances?: RawInstance[];
}

interface RawInstance {
  index_key?: string | number;
  deposed?: string;
  attributes?: Record<string, unknown> | null;
  sensitive_attributes?: unknown[];
}

/**
 * Returns what a state holds; null where it is encrypted. No resource shows a sensitive value, be it marked in the state or one of `secrets`;
 * outputs are whole. Throws Error for what is no state.
 */
export function readStateContent(text: string, secrets: readonly string[] = []): StateContent | null {
  return contentOf(readTerraformState(text), secrets);
}

/** Returns what a state holds that was read before. Throws Error for what is no state. */
export function contentOf(value: object | null, secrets: readonly string[]): StateContent | null {
  if (!value) return null;
  const state = value as RawState;
  return {
    serial: state.serial,
    lineage: state.lineage ?? '',
    resources: withoutSecrets((state.resources ?? []).flatMap(instancesOf), [...sensitiveStringsOf(state), ...secrets]),
    outputs: Object.entries(state.outputs ?? {}).map(([name, output]) => ({
      name,
      value: output.value,
      sensitive: output.sensitive === true,
    })),
  };
}

const PROVIDER = /^(?:.*\.)?provider\["(?<source>[^"]+)"\](?<alias>.*)$/;

function instancesOf(resource: RawResource): StateResource[] {
  const mode = resource.mode === 'data' ? ('data' as const) : ('managed' as const);
  const { source, alias } = PROVIDER.exec(resource.provider)?.groups ?? {};
  return (resource.instances ?? []).map((instance) => ({
    address: addressOf(resource, instance, mode),
    type: resource.type,
    name: resource.name,
    provider: source ? `${source}${alias}` : resource.provider,
    mode,
    attributes: withoutSensitive(instance),
  }));
}

function addressOf(resource: RawResource, instance: RawInstance, mode: 'managed' | 'data'): string {
  const { index_key: key } = instance;
  const index = key === undefined ? '' : typeof key === 'number' ? `[${key}]` : `[${JSON.stringify(key)}]`;
  const deposed = instance.deposed ? ` (deposed ${instance.deposed})` : '';
  const parts = [resource.module, mode === 'data' ? 'data' : undefined, resource.type, resource.name];
  return `${parts.filter(Boolean).join('.')}${index}${deposed}`;
}

/** Replacement of a sensitive value. */
export const SENSITIVE = '(sensitive value)';

interface PathStep {
  type: 'get_attr' | 'index';
  value: string | { value: string | number };
}

/** Returns the plain value of an attribute: states wrap the value of an attribute of any type together with its type. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(plain);
  const { type, value: inner } = value as Record<string, unknown>;
  if (Object.keys(value).length === 2 && 'value' in value && isTypeName(type)) return plain(inner);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

const isTypeName = (type: unknown): boolean =>
  Array.isArray(type)
    ? ['list', 'set', 'map', 'object', 'tuple'].includes(String(type[0]))
    : ['string', 'number', 'bool', 'dynamic'].includes(String(type));

const attributesOf = ({ attributes }: RawInstance) => plain(attributes ?? {}) as Record<string, unknown>;

function withoutSensitive(instance: RawInstance): Record<string, unknown> {
  const { sensitive_attributes: marked } = instance;
  const shown = { attributes: attributesOf(instance) };
  for (const path of marked ?? [])
    if (Array.isArray(path)) for (const place of placesOf(shown, path as PathStep[])) place.set(SENSITIVE);
  return shown.attributes;
}

interface Place {
  value: unknown;
  set(value: unknown): void;
}

/**
 * Returns the one place that a path of a state leads to, or none. A step into a value without such a key, such as a set, ends at the whole
 * value.
 */
function placesOf(root: { attributes: Record<string, unknown> }, path: PathStep[]): Place[] {
  let at: Place = { value: root.attributes, set: (value) => (root.attributes = { hidden: value }) };
  for (const [depth, step] of path.entries()) {
    const { value: holder } = at;
    if (holder === null || typeof holder !== 'object') return holder === null ? [] : [at];
    const key = typeof step.value === 'object' ? step.value?.value : step.value;
    const inside = holder as Record<string | number, unknown>;
    if (key === undefined || !Object.hasOwn(inside, key)) return depth === 0 ? [] : [at];
    at = { value: inside[key], set: (value) => (inside[key] = value) };
  }
  return [at];
}

/** Shorter values stand everywhere by chance (docs/contributing/rules.md 36). */
const LEAST_MASKED = 4;

/** Returns every string that a state marks as sensitive: a provider may have copied it to an unmarked place. */
function sensitiveStringsOf(state: RawState): string[] {
  const found = new Set<string>();
  for (const output of Object.values(state.outputs ?? {})) if (output.sensitive) collect(output.value, found);
  for (const { instances } of state.resources ?? [])
    for (const instance of instances ?? [])
      for (const path of instance.sensitive_attributes ?? [])
        if (Array.isArray(path))
          for (const { value } of placesOf({ attributes: attributesOf(instance) }, path as PathStep[]))
            collect(value, found);
  return [...found];
}

function collect(value: unknown, into: Set<string>): void {
  if (typeof value === 'string' && value.length >= LEAST_MASKED) into.add(value);
  else if (value !== null && typeof value === 'object') for (const inner of Object.values(value)) collect(inner, into);
}

/** Returns the data without the sensitive strings, which are removed from its strings and keys: it may be stored and shown. */
export function withoutSecrets<T>(data: T, secrets: readonly string[]): T {
  const masked = maskOf(secrets, SENSITIVE);
  const clean = (value: unknown): unknown => {
    // PostgreSQL keeps neither NUL nor half of a surrogate pair.
    if (typeof value === 'string') return masked(value.toWellFormed().replaceAll('\0', ''));
    if (Array.isArray(value)) return value.map(clean);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [clean(key), clean(inner)]));
  };
  return clean(data) as T;
}
