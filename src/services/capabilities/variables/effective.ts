import type { Context } from '#platform/context.ts';
import {
  effectiveRecords,
  examineVariables,
  mountPathOf,
  typeOf,
  valueHolderOf,
} from '#deployments/model/variables.ts';
import { withholdSecrets } from '#deployments/model/withheld-secrets.ts';
import { isOfFork } from '#resources/environment/index.ts';
import { loadLine, type Place } from '#services/capabilities/variables/line.ts';
import { freeze, thawVariables } from '#services/capabilities/variables/snapshot.ts';

const WITHHELD = 'It is a secret, or names one: secrets do not reach the code of a fork, so that it has no value here.';

/**
 * Returns the variables that a deployment of a service would set now: the value of each key, its source, and the failures. Values of
 * secrets, and values that contain a secret, are left out.
 */
export async function effectiveVariables(context: Context, service: Place) {
  const { entries, byId } = await loadLine(context, service);
  const { organizationId, environmentId } = service;
  const isFork = environmentId !== undefined && (await isOfFork(context.db, { organizationId }, environmentId));
  const frozen = entries.map(freeze);
  const records = await thawVariables(context, organizationId, isFork ? withholdSecrets(frozen) : frozen);
  // External secrets are not asked for: that they have a value is all that is told of them.
  const { variables, files, warnings, failures, withheld } = examineVariables(
    records.map((record) => (record.external ? { ...record, value: '' } : record)),
  );
  const values = new Map(variables.map((one) => [one.key, one]));
  const byPath = new Map(files.map((file) => [file.path, file]));
  const isWithheld = new Set(withheld);
  const results = [...effectiveRecords(entries)].map(([key, entry]) => {
    const path = mountPathOf(entry, byId);
    const file = path === undefined ? undefined : byPath.get(path);
    const expanded = values.get(key);
    const isExternal = valueHolderOf(entry, byId)?.external !== undefined;
    const isSecret = entry.isSecret || isExternal || isWithheld.has(key) || (file ?? expanded)?.isSecret || false;
    const text = path === undefined ? expanded?.value : file?.content;
    return {
      key,
      value: isSecret || failures.has(key) ? null : (text ?? null),
      is_secret: isSecret,
      mount_path: path ?? null,
      error: isWithheld.has(key) ? WITHHELD : (failures.get(key)?.message ?? null),
      origin: { id: entry.id, scope: entry.scope, variable_type: typeOf(entry) },
    };
  });
  return { results, warnings };
}
