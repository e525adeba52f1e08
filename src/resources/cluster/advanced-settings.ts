import ipaddr from 'ipaddr.js';
import { badRequest, invalidField, type FieldError } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { imageReference } from '#platform/oci/index.ts';
import * as queries from '#resources/cluster/queries.ts';
import { auditCluster } from '#resources/cluster/rules.ts';
import {
  ADVANCED_SETTINGS,
  NETWORK_SETTINGS,
  ORDERED_SETTINGS,
  REGISTRY_SETTING,
} from '#resources/cluster/schema/advanced-settings.ts';
import { findRegistry } from '#resources/registry/index.ts';

type Values = Record<string, unknown>;

export const DEFAULT_ADVANCED_SETTINGS: Values = Object.fromEntries(
  Object.entries(ADVANCED_SETTINGS).map(([key, setting]) => [key, setting.default]),
);

/** Returns all advanced settings of a cluster: the stored values over the defaults. */
export const advancedSettingsOf = (row: Pick<queries.ClusterRow, 'advanced_settings'>): Values => ({
  ...DEFAULT_ADVANCED_SETTINGS,
  ...row.advanced_settings,
});

/**
 * Replaces the advanced settings: what is absent or null falls back to its default. 400 names every key that is unknown or
 * contradicts another.
 */
export async function editAdvancedSettings(
  context: Context,
  cluster: queries.ClusterRow,
  input: Values,
): Promise<Values> {
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
  const after = { ...DEFAULT_ADVANCED_SETTINGS, ...given };
  const errors = [
    ...unknownKeys(input),
    ...wrongNetworks(given),
    ...wrongOrder(after),
    ...uselessRegistry(cluster, given),
  ].slice(0, 20);
  if (errors.length > 0) throw badRequest(errors.map((error) => `${error.field}: ${error.message}`).join('; '), errors);
  await checkRegistry(context, cluster, given);
  // Defaults aren't stored: a better one of a later release then holds where none was chosen.
  const chosen = changedPart(given, DEFAULT_ADVANCED_SETTINGS);
  const scope = { organizationId: cluster.organization_id };
  await queries.updateCluster(context.db, scope, cluster.id, { advanced_settings: chosen });
  await auditCluster(context, cluster, 'UPDATE', {
    sub: 'ADVANCED_SETTINGS',
    before: advancedSettingsOf(cluster),
    after,
  });
  return after;
}

const unknownKeys = (input: Values): FieldError[] =>
  Object.keys(input)
    .filter((key) => !Object.hasOwn(ADVANCED_SETTINGS, key))
    .map((field) => ({ field, message: 'is no advanced setting: GET /defaultClusterAdvancedSettings lists them' }));

const wrongNetworks = (input: Values): FieldError[] =>
  NETWORK_SETTINGS.flatMap((field) =>
    ((input[field] ?? []) as string[])
      .filter((cidr) => !ipaddr.isValidCIDR(cidr))
      .map((cidr) => ({ field, message: `${cidr} is not a network: must be a CIDR such as 10.0.0.0/16` })),
  );

const wrongOrder = (values: Values): FieldError[] =>
  ORDERED_SETTINGS.filter(([low, high]) => Number(values[low]) > Number(values[high])).map(([field, high]) => ({
    field,
    message: `must not be larger than ${high} (${String(values[high])})`,
  }));

const uselessRegistry = ({ name, runtime }: queries.ClusterRow, given: Values): FieldError[] =>
  given[REGISTRY_SETTING] === undefined || runtime === 'kubernetes'
    ? []
    : [
        {
          field: REGISTRY_SETTING,
          message: `is for clusters on Kubernetes only: ${name} runs on the ${runtime} runtime, which keeps the images that it builds`,
        },
      ];

/** Throws 400 for a registry that images cannot be pushed to: another organization's, or Docker Hub without a namespace. */
async function checkRegistry(context: Context, cluster: queries.ClusterRow, given: Values): Promise<void> {
  const id = given[REGISTRY_SETTING];
  if (id === undefined) return;
  const { name, kind, url } = await findRegistry(context, cluster.organization_id, id as string, REGISTRY_SETTING);
  if (kind === 'PUBLIC_ECR')
    throw invalidField(REGISTRY_SETTING, `names ${name}, to which nothing is pushed with a user name and a password`);
  if (imageReference(url, 'x').startsWith('docker.io/library/'))
    throw invalidField(
      REGISTRY_SETTING,
      `names ${name}, whose URL lacks your namespace at Docker Hub: change it to https://docker.io/<namespace>`,
    );
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const changedPart = (values: Values, other: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([key, value]) => !same(value, other[key])));
