import { hostname } from 'node:os';
import path from 'node:path';
import { writeAtomically } from '#kernel/private-files.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { lockInTransaction } from '#platform/database/locks.ts';
import { readInstallation } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { insertCluster, type NewClusterInput } from '#resources/cluster/index.ts';
import {
  hasOrganization,
  makeAdministrator,
  makeAdministratorToken,
  makeOrganization,
} from '#resources/organization/index.ts';

export const tokenFile = (settings: Settings): string => path.join(settings.dataDir, 'admin-token');

/** Organization and administrator's token that the first start created. */
export interface FirstSteps {
  organizationId: string;
  /** Person whom the first organization belongs to. */
  administratorId: string;
  /** Null with temporary data, which would take its file along: `quarterdeck token create` makes one. */
  token: string | null;
}

interface Parts {
  platform: Platform;
  settings: Settings;
  nodeId: string;
  /** Repeats work while the database is not available. */
  patiently<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Runs the first start: creates an organization, its administrator with a token, and a cluster for this machine (docs/contributing/rules.md
 * 26). The token is written to its file before the commit, so that a crash leaves either everything or a file whose token is not valid.
 * Returns undefined if an earlier start did it.
 */
export async function firstSteps(
  { platform, settings, nodeId, patiently }: Parts,
  runtime: NewClusterInput['runtime'],
): Promise<FirstSteps | undefined> {
  let made: FirstSteps | undefined;
  const take = async (context: Context) => {
    // One process at a time: several may start on an empty database.
    await lockInTransaction(context.db, 'firstStart');
    // A restored installation gets no first organization, even if the backup is empty.
    if ((await readInstallation(context.db)).restoredAt) return undefined;
    const present = await hasOrganization(context.db);
    // A connection that broke during the commit leaves open whether what the attempt before made is there.
    if (present) return made && (await hasOrganization(context.db, made.organizationId)) ? made : undefined;
    const userId = await makeAdministrator(context);
    const organizationId = await makeOrganization(context, 'My organization', userId);
    const token = settings.temporaryData
      ? null
      : await makeAdministratorToken(context, organizationId, userId, 'First administrator');
    await insertCluster(context, { organizationId, name: 'local', runtime, ...placeOf(settings, runtime, nodeId) });
    if (token !== null) writeAtomically(tokenFile(settings), `${token}\n`);
    return (made = { organizationId, administratorId: userId, token });
  };
  return patiently(() => inTransaction(systemContext(platform), take));
}

/** Returns where the first cluster is. A Kubernetes cluster belongs to no machine, and is deployed only if it can be reached. */
const placeOf = (settings: Settings, runtime: string, nodeId: string) =>
  runtime === 'kubernetes'
    ? { description: 'Kubernetes', nodeId: null, deploy: settings.ownCluster.includes('first') }
    : { description: `This machine (${hostname()})`, nodeId, deploy: true };
