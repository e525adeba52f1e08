import { anySignal } from '#kernel/lease-signal.ts';
import { findMakerPrincipal, type Maker } from '#platform/access/makers.ts';
import { permits } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { createHttpClient, isProtected } from '#platform/http-client/index.ts';
import { effectiveRecords, valueHolderOf, VariableError, type VariableRecord } from '#deployments/model/variables.ts';
import { openSecretManagerAccess, type OpenAccess } from '#resources/cluster/index.ts';
import {
  openSecretManager,
  SecretManagerError,
  type SecretManager,
} from '#resources/secret-manager-access/managers/index.ts';

/** Time limit for all pages, tokens and secrets that one piece of work asks for. */
const TIMEOUT_MS = 60_000;
/** Number of secrets that are read at the same time. */
const AT_A_TIME = 8;

/** Opens a secret manager by the id of its access, with the access's name; undefined if the organization has none with that id. */
export async function openManagerOf(
  context: Context,
  scope: Scope,
  id: string,
  signal: AbortSignal,
): Promise<(SecretManager & { name: string; clusterId: string }) | undefined> {
  const access = await openSecretManagerAccess(context, scope, id);
  if (!access) return undefined;
  const { settings, clock } = context;
  const { url } = access.endpoint;
  if (url !== undefined && !isProtected(url, settings.allowedPrivateAddresses)) return refused(access);
  const manager = openSecretManager(access, {
    http: createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses }),
    settings,
    clock,
    signal: anySignal([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    organizationId: scope.organizationId,
  });
  return { ...manager, name: access.name, clusterId: access.clusterId };
}

/** Refuses an access from before plain http:// was refused: its token is not sent. */
function refused({ name, clusterId, endpoint }: OpenAccess) {
  const refuse = () =>
    Promise.reject(new SecretManagerError('http:// would show its token to others: give the access an https:// URL'));
  return { name, clusterId, label: endpoint.url!, list: refuse, read: refuse };
}

/** External secret to read, and the records that it is the value of. */
interface Wanted {
  access: string;
  name: string;
  /** Person and token with whose permission it is read; without a person if an earlier release did not record them. */
  chooser: Maker;
  records: VariableRecord[];
}

/**
 * Returns the records with the values of external secrets, read now and stored nowhere (docs/contributing/rules.md 34). Only records that
 * count are read: overridden ones cost no call. A secret is read with the permission of the person who chose it, and of the token that they
 * used: without `cluster.use` on the cluster of the access nothing is read. Throws VariableError, which names each key and the manager that
 * did not give its secret.
 */
export async function readExternalSecrets(
  context: Context,
  scope: Scope,
  records: VariableRecord[],
  signal: AbortSignal,
): Promise<VariableRecord[]> {
  const wanted = wantedOf(records);
  if (wanted.length === 0) return records;
  const managers = new Map<string, Awaited<ReturnType<typeof openManagerOf>>>();
  for (const { access } of wanted)
    if (!managers.has(access)) managers.set(access, await openManagerOf(context, scope, access, signal));
  const values = new Map<VariableRecord, string>();
  const failures: { keys: string[]; message: string }[] = [];
  const waiting = [...wanted];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const result = await readOne(context, scope, managers.get(next.access), next);
      if ('failure' in result) failures.push({ keys: keysOf(next), message: result.failure });
      else for (const record of next.records) values.set(record, result.value);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  signal.throwIfAborted();
  if (failures.length > 0) throw new VariableError(failures.map((one) => ({ code: 'EXTERNAL_SECRET', ...one })));
  return records.map((record) => (values.has(record) ? { ...record, value: values.get(record)! } : record));
}

/** Collects the external secrets behind the records that count, each once. */
function wantedOf(records: VariableRecord[]): Wanted[] {
  if (!records.some((record) => record.external)) return [];
  const byId = new Map(records.map((record) => [record.id, record]));
  const wanted = new Map<string, Wanted>();
  for (const record of effectiveRecords(records).values()) {
    const holder = valueHolderOf(record, byId);
    if (!holder?.external || holder.value !== null) continue;
    const { access, name, chosenBy, chosenWith } = holder.external;
    const key = `${access} ${chosenBy} ${chosenWith} ${name}`;
    const chooser = { userId: chosenBy ?? null, tokenId: chosenWith };
    const entry = wanted.get(key) ?? { access, name, chooser, records: [] };
    if (!entry.records.includes(holder)) entry.records.push(holder);
    wanted.set(key, entry);
  }
  return [...wanted.values()];
}

const keysOf = ({ records }: Wanted): string[] => records.map(({ key }) => key).sort();

async function mayRead(context: Context, scope: Scope, clusterId: string, chooser: Maker) {
  if (chooser.userId === null) return true;
  const maker = await findMakerPrincipal(context, scope, chooser);
  return maker !== undefined && permits(maker, 'cluster.use', { organizationId: scope.organizationId, clusterId });
}

async function readOne(
  context: Context,
  scope: Scope,
  manager: Awaited<ReturnType<typeof openManagerOf>>,
  wanted: Wanted,
): Promise<{ value: string } | { failure: string }> {
  const what = `No value for ${keysOf(wanted).join(' and ')}: the external secret "${wanted.name}"`;
  if (!manager) return { failure: `${what} is of a secret manager access that is gone.` };
  if (!(await mayRead(context, scope, manager.clusterId, wanted.chooser)))
    return {
      failure: `${what} is of ${manager.name}, and whoever chose it, or the token that they used, has no permission cluster.use on its cluster any more: a member who has it must save the variable again with its secret_manager_access_id.`,
    };
  try {
    return { value: await manager.read(wanted.name) };
  } catch (error) {
    if (!(error instanceof SecretManagerError)) throw error;
    return { failure: `${what} of ${manager.name} (${manager.label}): ${error.message}.` };
  }
}
