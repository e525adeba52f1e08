import { newId } from '#kernel/ids.ts';
import type { JobOutput } from '#kernel/parsing/formats.ts';
import type { Context } from '#platform/context.ts';
import type { VariableRecord } from '#deployments/model/variables.ts';
import { ofRow } from '#services/capabilities/variables/line.ts';
import * as queries from '#services/capabilities/variables/output-queries.ts';
import { openSecrets, sealSecrets } from '#services/capabilities/variables/secrets.ts';
import { checkSaid } from '#services/capabilities/variables/rules.ts';
import { freeze, thawVariables } from '#services/capabilities/variables/snapshot.ts';

/** The execution that wrote outputs. */
export interface OutputPlace {
  organizationId: string;
  environmentId: string;
  serviceId: string;
  deploymentId: string;
}

/**
 * Stores the outputs of an execution as variables and secrets of its environment, in place of the service's earlier outputs. The version of
 * the environment stays, because the outputs of a deployment make nothing out of date (docs/contributing/engine.md). A variable that a user
 * created keeps its value. Returns lines for the log. Throws 400 for a key, a value or a path that variables do not allow.
 */
export async function recordOutputs(context: Context, place: OutputPlace, outputs: JobOutput[]): Promise<string[]> {
  for (const { key, value, mountPath, description } of outputs)
    checkSaid({ key, value, mount_path: mountPath, description }, context.settings.builtInVariablePrefix);
  const keys = outputs.map(({ key }) => key);
  const present = await queries.listInTheWay(context.db, place, { ...place, keys });
  const lines: string[] = [];
  const kept = new Set<string>();
  for (const output of outputs) {
    const same = present.filter(({ key }) => key === output.key);
    if (same.some((row) => !isOutput(row))) {
      lines.push(`${output.key} is a variable of the environment that somebody made: it keeps its value.`);
      continue;
    }
    const row = same.find(({ is_secret }) => is_secret === output.isSecret);
    kept.add(await write(context, place, output, row));
    lines.push(`${output.key} is written to the environment's ${output.isSecret ? 'secrets' : 'variables'}.`);
  }
  const replaced = new Set(keys);
  const gone = present.filter(
    (row) => isOutput(row) && !kept.has(row.id) && (row.output_of === place.serviceId || replaced.has(row.key)),
  );
  if (gone.length > 0)
    await queries.deleteOutputs(
      context.db,
      place,
      gone.map(({ id }) => id),
    );
  return lines;
}

/**
 * Tells whether an execution may overwrite the variable. It may not once a user gave an output a secret manager access: the execution would
 * choose another secret with that user's right.
 */
const isOutput = (row: queries.RowInTheWay) => row.output_of !== null && row.secret_manager_access_id === null;

async function write(
  context: Context,
  place: OutputPlace,
  output: JobOutput,
  row: queries.RowInTheWay | undefined,
): Promise<string> {
  const { organizationId, environmentId } = place;
  const { isSecret, value } = output;
  const written = {
    value: isSecret ? null : value,
    mount_path: output.mountPath,
    description: output.description,
    output_of: place.serviceId,
    output_deployment: place.deploymentId,
  };
  if (row) {
    const changed = isSecret ? await isNewSecret(context, organizationId, row, value) : row.value !== value;
    const version = row.value_version + (changed ? 1 : 0);
    if (isSecret && changed) await sealSecrets(context, organizationId, [{ id: row.id, version, value }]);
    await queries.updateOutput(context.db, place, row.id, { ...written, value_version: version });
    return row.id;
  }
  const id = newId();
  if (isSecret) await sealSecrets(context, organizationId, [{ id, version: 1, value }]);
  await queries.insertOutput(context.db, {
    ...written,
    id,
    organization_id: organizationId,
    environment_id: environmentId,
    key: output.key,
    is_secret: isSecret,
    scope: 'ENVIRONMENT',
    owned_by: context.settings.ownedBy,
  });
  return id;
}

async function isNewSecret(context: Context, organizationId: string, row: queries.RowInTheWay, value: string) {
  const version = { id: row.id, version: row.value_version };
  return (await openSecrets(context, organizationId, [version]))(version) !== value;
}

/**
 * Replaces frozen variables by the outputs that were written since. A rollback takes only the outputs of its own deployment, and keeps the
 * rest as frozen.
 */
export async function withOutputs(
  context: Context,
  organizationId: string,
  records: VariableRecord[],
  deployment: { id: string; environmentId: string; isRollback: boolean },
): Promise<VariableRecord[]> {
  const { id, environmentId, isRollback } = deployment;
  const rows = await queries.listOutputs(context.db, { organizationId }, environmentId, isRollback ? id : null);
  if (rows.length === 0) return records;
  const frozen = rows.map((row) => freeze(ofRow(row)));
  const written = await thawVariables(context, organizationId, frozen);
  const replaced = new Set(written.map((one) => one.id));
  return [...records.filter((one) => !replaced.has(one.id)), ...written];
}
