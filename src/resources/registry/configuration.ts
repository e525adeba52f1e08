import { badRequest } from '#kernel/errors.ts';
import { Type } from '#platform/http/schema.ts';

/** Ways in which a kind of registry or repository takes credentials. */
export interface CredentialShape {
  /** Sets of required fields, one for each way; the first is shown to people. */
  ways: readonly (readonly string[])[];
  /** Fields that may be given besides. */
  optional?: readonly string[];
  /** True if it can be used without credentials. */
  anonymous: boolean;
}

export type Configuration = Record<string, string | number>;

/** Configuration, split into its answered and its secret part. */
export interface SplitConfiguration {
  /** Fields that may be answered. */
  config: Configuration;
  /** Fields that are never answered. */
  secrets: Configuration;
}

/** Fields that are encrypted and never answered; all others are answered as they were given. */
const SECRET = new Set(['secret_access_key', 'scaleway_secret_key', 'json_credentials', 'password']);

const Text = Type.Optional(Type.String({ maxLength: 2000 }));
const Secret = Type.Optional(
  Type.String({ maxLength: 20_000, description: 'Stored encrypted and never answered; left out in an edit it stays.' }),
);
/** Becomes part of a host name. */
const Region = Type.Optional(Type.String({ maxLength: 63, pattern: '^[a-z0-9-]*$' }));

/** Fields that registries and Helm repositories have in common, in requests. */
export const credentialFields = {
  username: Text,
  password: Secret,
  access_key_id: Text,
  secret_access_key: Secret,
  region: Region,
  role_arn: Text,
  scaleway_access_key: Text,
  scaleway_secret_key: Secret,
  scaleway_project_id: Text,
  azure_tenant_id: Text,
  azure_subscription_id: Text,
};

const fieldsOf = ({ ways, optional = [] }: CredentialShape): string[] => [...new Set([...ways.flat(), ...optional])];

/** Returns the fields of the kind's first way to log in, each with its type, as `available…` answers them. */
export const requiredConfig = ({ ways }: CredentialShape): Record<string, string> =>
  Object.fromEntries((ways[0] ?? []).map((field) => [field, 'string']));

/**
 * Checks a configuration against the shape of its kind, and splits off what is secret. In an edit, what is left out keeps its `present`
 * value and an empty text removes it. 400 names each field that is missing, or that the kind has not.
 */
export function readConfiguration(
  kind: string,
  shape: CredentialShape,
  input: Record<string, unknown>,
  present: SplitConfiguration | null = null,
): SplitConfiguration {
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as Configuration;
  const merged = withoutEmpty({ ...present?.config, ...present?.secrets, ...given });
  const way = chooseWay(shape, withoutEmpty(given), merged);
  const errors = [
    ...Object.keys(withoutEmpty(given))
      .filter((field) => !fieldsOf(shape).includes(field))
      .map((field) => ({ field, message: `is nothing that ${kind} has: ${takes(shape)}` })),
    ...way
      .filter((field) => merged[field] === undefined)
      .map((field) => ({ field, message: `is required for ${kind}: ${takes(shape)}` })),
  ].map(({ field, message }) => ({ field: `config.${field}`, message }));
  if (errors.length > 0) throw badRequest(errors.map((one) => `${one.field}: ${one.message}`).join('; '), errors);
  const kept = Object.entries(merged).filter(([field]) => way.includes(field) || shape.optional?.includes(field));
  return {
    config: Object.fromEntries(kept.filter(([field]) => !SECRET.has(field))),
    secrets: Object.fromEntries(kept.filter(([field]) => SECRET.has(field))),
  };
}

/**
 * Throws 400 for secrets that an edit of kind or URL must give again. A secret goes only to the server that it was given for: naming
 * another server does not reveal it.
 */
export function refuseMoved(input: Record<string, unknown>, secrets: Configuration, moved: boolean): void {
  if (!moved) return;
  const message = 'is required when kind or url change: it would be sent to another address';
  const errors = Object.keys(secrets)
    .filter((field) => input[field] === undefined)
    .map((field) => ({ field: `config.${field}`, message }));
  if (errors.length > 0) throw badRequest(errors.map((one) => `${one.field}: ${message}`).join('; '), errors);
}

/**
 * Returns the way that the given fields belong to, else the present ones; an empty list if no credentials are given and none are required.
 */
function chooseWay(
  { ways, anonymous }: CredentialShape,
  given: Configuration,
  merged: Configuration,
): readonly string[] {
  const count = (way: readonly string[], fields: Configuration) => way.filter((field) => field in fields).length;
  const score = (way: readonly string[]) => 100 * count(way, given) + count(way, merged);
  const best = [...ways].sort((one, other) => score(other) - score(one))[0] ?? [];
  return anonymous && count(best, merged) === 0 ? [] : best;
}

const withoutEmpty = (fields: Configuration): Configuration =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));

function takes({ ways, anonymous }: CredentialShape): string {
  const texts = ways.map((way) => way.join(', '));
  if (texts.length === 0) return 'it takes nothing';
  return `it takes ${texts.join(', or ')}${anonymous ? ', or nothing' : ''}`;
}
