import { createHash } from 'node:crypto';
import { shortId } from '#kernel/ids.ts';

/** Encrypted value that is not stored among the secrets of variables: a database's password. */
export interface SealedValue {
  /** Place that it was sealed for (platform/vault). */
  place: string;
  /** Base64. */
  content: string;
  /** Parts of a URL before and after the value, which is percent-encoded between them; absent if it is not in a URL. */
  url?: { before: string; after: string };
}

/** Address and login of a database. */
export interface DatabaseAccess {
  internal: { host: string; port: number };
  /** From outside the environment; null when it isn't publicly accessible. */
  external: { host: string; port: number } | null;
  login: string;
  password: SealedValue;
  name: string;
  /** Query that the database's URL needs for the login to be accepted. */
  urlQuery?: string;
}

/** Properties of a service that built-in variables are derived from. */
export interface BuiltInService {
  id: string;
  /** Part of the keys: the kind, for databases their type (`POSTGRESQL`). */
  type: string;
  /** Host name among the services of the environment; null for what serves nothing. */
  hostInternal: string | null;
  /** Public host name; null when nothing of it is publicly accessible. */
  hostExternal: string | null;
  database: DatabaseAccess | null;
}

/** A derived variable. Exactly one of `value` and `sealed` is not null; what is sealed is a secret. */
export interface BuiltInVariable {
  id: string;
  key: string;
  /** Id of the project, environment or service that it tells of. */
  of: string;
  value: string | null;
  sealed: SealedValue | null;
}

const DATABASE_PARTS = ['HOST', 'PORT', 'LOGIN', 'PASSWORD', 'DEFAULT_DATABASE_NAME', 'DATABASE_URL'] as const;
const PARTS = [
  'PROJECT_ID',
  'ENVIRONMENT_ID',
  'HOST_EXTERNAL',
  ...DATABASE_PARTS,
  ...DATABASE_PARTS.map((part) => `${part}_INTERNAL` as const),
] as const;
type Part = (typeof PARTS)[number];

/**
 * The built-in variables of a place (docs/contributing/rules.md 37): of its project, its environment and all services of that. A pure function of what
 * is given: built-ins are never stored and move no version.
 */
export function builtInVariables(
  prefix: string,
  place: { project: { id: string }; environment?: { id: string }; services: BuiltInService[] },
): BuiltInVariable[] {
  const { project, environment } = place;
  return [
    plain(project.id, 'PROJECT_ID', `${prefix}PROJECT_ID`, project.id),
    ...(environment ? [plain(environment.id, 'ENVIRONMENT_ID', `${prefix}ENVIRONMENT_ID`, environment.id)] : []),
    ...place.services.flatMap((service) => ofService(prefix, service)),
  ];
}

function ofService(prefix: string, service: BuiltInService): BuiltInVariable[] {
  const key = (part: Part) => `${prefix}${service.type}_Z${shortId(service.id).toUpperCase()}_${part}`;
  const text = (part: Part, value: string) => plain(service.id, part, key(part), value);
  const secret = (part: Part, sealed: SealedValue): BuiltInVariable => ({
    ...plain(service.id, part, key(part), null),
    sealed,
  });
  const { database } = service;
  if (database) {
    const at = (suffix: '' | '_INTERNAL', { host, port }: { host: string; port: number }) => [
      text(`HOST${suffix}`, host),
      text(`PORT${suffix}`, String(port)),
      text(`LOGIN${suffix}`, database.login),
      secret(`PASSWORD${suffix}`, database.password),
      text(`DEFAULT_DATABASE_NAME${suffix}`, database.name),
      secret(`DATABASE_URL${suffix}`, { ...database.password, url: urlOf(service.type, database, host, port) }),
    ];
    return [...at('', database.external ?? database.internal), ...at('_INTERNAL', database.internal)];
  }
  return [
    ...(service.hostInternal === null ? [] : [text('HOST_INTERNAL', service.hostInternal)]),
    ...(service.hostExternal === null ? [] : [text('HOST_EXTERNAL', service.hostExternal)]),
  ];
}

const plain = (of: string, part: Part, key: string, value: string | null): BuiltInVariable => ({
  id: builtInId(of, part),
  key,
  of,
  value,
  sealed: null,
});

/** Returns the parts of a database's URL around the password. Its scheme is the type: postgresql, mysql, mongodb, redis. */
const urlOf = (type: string, database: DatabaseAccess, host: string, port: number) => ({
  before: `${type.toLowerCase()}://${encodeURIComponent(database.login)}:`,
  after: `@${host}:${port}/${encodeURIComponent(database.name)}${database.urlQuery ? `?${database.urlQuery}` : ''}`,
});

/** Returns the variable's text for a decrypted value: the value itself, or its URL. */
export const unsealedText = ({ url }: SealedValue, plainText: string): string =>
  url ? `${url.before}${encodeURIComponent(plainText)}${url.after}` : plainText;

// The ids: what the variable tells of has a UUID of version 4. Its bits, exchanged by a mask per part, give a UUID of version 8 (RFC 9562
// §5.8, vendor-specific): stable while keys change with the prefix, and it leads back to its owner without any row or list.

const VERSION_BYTE = 6;

function maskOf(part: Part): Buffer {
  const mask = createHash('sha256').update(`built-in variable ${part}`).digest().subarray(0, 16);
  mask[VERSION_BYTE]! &= 0x0f;
  mask[8]! &= 0x3f;
  return mask;
}
const MASKS = new Map<Part, Buffer>(PARTS.map((part) => [part, maskOf(part)]));

function exchange(id: string, part: Part, version: number): string {
  const mask = MASKS.get(part)!;
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex').map((byte, index) => byte ^ mask[index]!);
  bytes[VERSION_BYTE] = (bytes[VERSION_BYTE]! & 0x0f) | (version << 4);
  const hex = Buffer.from(bytes).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Returns the id of a built-in variable, derived from its owner's id and its part: the same for ever. */
export const builtInId = (of: string, part: Part): string => exchange(of, part, 8);

/** Returns whether an id can only be a built-in variable's. */
export const isBuiltInId = (id: string): boolean => id[14] === '8';

/** Returns ids of projects, environments or services of which one owns the built-in variable with this id, if any does. */
export const ownersOfBuiltIn = (id: string): string[] =>
  isBuiltInId(id) ? PARTS.map((part) => exchange(id, part, 4)) : [];

/**
 * Returns the id of the built-in variable of a copy that corresponds to this one; undefined if its owner was not copied. `copies` holds the
 * ids of copies by the ids of their originals.
 */
export function builtInOfCopy(id: string, copies: ReadonlyMap<string, string>): string | undefined {
  const owners = ownersOfBuiltIn(id);
  const at = owners.findIndex((owner) => copies.has(owner));
  return at < 0 ? undefined : builtInId(copies.get(owners[at]!)!, PARTS[at]!);
}
