import { badRequest } from '#kernel/errors.ts';
import { readFileOf } from '#kernel/parsing/index.ts';

/** Scaler of a service as its configuration has it; texts are YAML that nobody has read yet. */
export interface ScalerConfig {
  type: string;
  metadata: string | object;
  /** Credentials for the source of its events; null if it needs no credentials. */
  authentication: { name: string; config: string | null } | null;
}

/** Scaling of a service by events, which KEDA carries out. */
export interface EventScaling {
  pollingSeconds: number;
  cooldownSeconds: number;
  scalers: ScalerConfig[];
}

/** Trigger as KEDA takes it. */
export interface Trigger {
  type: string;
  metadata: Record<string, string>;
  metricType?: string;
  /** Sources of credentials, or the name of a TriggerAuthentication that is in the namespace already. */
  authentication: { config: Record<string, unknown> } | { name: string } | null;
}

/**
 * Parts of a TriggerAuthentication that a service may have: they read objects of its own namespace. All others act with KEDA's own identity
 * in the cloud, or read vaults and files with KEDA's rights.
 */
const SOURCES: Record<string, readonly string[]> = {
  secretTargetRef: ['parameter', 'name', 'key'],
  configMapTargetRef: ['parameter', 'name', 'key'],
  env: ['parameter', 'name', 'containerName'],
};

const TYPE = /^[a-z0-9][a-z0-9-]{0,62}$/;
const NAME = /^[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?$/;
const MOST_ENTRIES = 100;

/** Reads the scalers of a service in a thread. Throws 400 that names the scaler and its fault. */
export const readTriggers = (organizationId: string, scalers: ScalerConfig[]): Promise<Trigger[]> =>
  Promise.all(scalers.map((scaler, n) => readTrigger(organizationId, scaler, `autoscaling.scalers[${n}]`)));

async function readTrigger(organizationId: string, scaler: ScalerConfig, field: string): Promise<Trigger> {
  if (!TYPE.test(scaler.type)) throw badRequest(`${field}.scaler_type: must be a scaler of KEDA, such as cron.`);
  const config =
    typeof scaler.metadata === 'string'
      ? await readYaml(organizationId, scaler.metadata, `${field}.config_yaml`)
      : scaler.metadata;
  const where = `${field}.${typeof scaler.metadata === 'string' ? 'config_yaml' : 'config_json'}`;
  const fields = fieldsOf(config, where);
  // Either the metadata alone, or the trigger that contains them.
  const { metadata = {}, metricType, ...others } = 'metadata' in fields ? fields : { metadata: fields };
  for (const key of Object.keys(others))
    if (key !== 'type' && key !== 'name')
      throw badRequest(`${where}: ${key.slice(0, 100)} is not allowed beside metadata; metricType is.`);
  return {
    type: scaler.type,
    metadata: textsOf(metadata, where),
    ...(typeof metricType === 'string' ? { metricType } : {}),
    authentication: await readAuthentication(organizationId, scaler.authentication, `${field}.trigger_authentication`),
  };
}

async function readAuthentication(
  organizationId: string,
  authentication: ScalerConfig['authentication'],
  field: string,
): Promise<Trigger['authentication']> {
  if (authentication === null) return null;
  const { name, config: text } = authentication;
  if (text === null || text.trim() === '') {
    if (!NAME.test(name)) throw badRequest(`${field}.name: must be the name of a TriggerAuthentication.`);
    return { name };
  }
  const where = `${field}.config_yaml`;
  const whole = fieldsOf(await readYaml(organizationId, text, where), where);
  const sources = 'spec' in whole ? fieldsOf(whole['spec'], `${where}: spec`) : whole;
  const config = Object.entries(sources).map(([source, entries]) => [source, entriesOf(source, entries, where)]);
  return { config: Object.fromEntries(config) };
}

/** Returns the entries of a source of credentials with the known fields only; each is a text. */
function entriesOf(source: string, entries: unknown, where: string): Record<string, string>[] {
  const known = Object.hasOwn(SOURCES, source) ? SOURCES[source]! : null;
  if (known === null)
    throw badRequest(
      `${where}: ${source.slice(0, 100)} is not allowed, as KEDA would use rights of its own: take ${Object.keys(SOURCES).join(', ')}.`,
    );
  if (!Array.isArray(entries) || entries.length > MOST_ENTRIES)
    throw badRequest(`${where}: ${source} must be a list of at most ${MOST_ENTRIES} entries.`);
  return entries.map((entry) => {
    const texts = textsOf(entry, `${where}: ${source}`);
    for (const key of Object.keys(texts))
      if (!known.includes(key))
        throw badRequest(`${where}: ${source} has ${known.join(', ')} and no ${key.slice(0, 100)}.`);
    return texts;
  });
}

const readYaml = (organizationId: string, text: string, name: string): Promise<unknown> =>
  // Every value is a text, as KEDA wants it.
  readFileOf(organizationId, 'yaml', { name, text }, { plain: true, maxAliasCount: 0 });

function fieldsOf(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequest(`${where}: must be fields with their values, such as \`timezone: Etc/UTC\`.`);
  return value as Record<string, unknown>;
}

function textsOf(value: unknown, where: string): Record<string, string> {
  const entries = Object.entries(fieldsOf(value, where));
  if (entries.length > MOST_ENTRIES) throw badRequest(`${where}: must have at most ${MOST_ENTRIES} fields.`);
  return Object.fromEntries(
    entries.map(([key, one]): [string, string] => {
      if (typeof one !== 'string' && typeof one !== 'number' && typeof one !== 'boolean')
        throw badRequest(`${where}: ${key.slice(0, 100)} must be a text, a number, or true or false.`);
      return [key, String(one)];
    }),
  );
}
