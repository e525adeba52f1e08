import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KindHooks } from '#deployments/index.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { openCredentials } from '#services/kinds/database/access.ts';
import { fetchMissing } from '#services/kinds/database/backups/elsewhere.ts';
import { readBackup, verifyBackup } from '#services/kinds/database/backups/file.ts';
import { findLastBackup, findOpenFill, insertFill, recordFill, renewBackup, type FillRow } from '#services/kinds/database/backups/fill-queries.ts'; // prettier-ignore
import { refuseForkRestore } from '#services/kinds/database/backups/forks.ts';
import { addBackup, fileOf } from '#services/kinds/database/backups/new-backup.ts';
import { deleteBackup, findBackup, type BackupRow } from '#services/kinds/database/backups/queries.ts';
import { requireReadable } from '#services/kinds/database/backups/readable.ts';
import { restoreFrom } from '#services/kinds/database/backups/run.ts';
import { editionOfSpec } from '#services/kinds/database/deploy.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import type { ContentOfCopy } from '#services/kind.ts';
import { findServiceById, type ServiceRow } from '#services/service/queries.ts';
import { placeOfService } from '#services/service/service.ts';

const LOOK_MS = 1000;
/** Milliseconds after which progress is told again: a step without a line counts as hung. */
const TOLD_MS = 30_000;

/** Notes that the first deployment of a copy loads the content of its source. A source that does not run has backups at most. */
export async function fillCopy(context: Context, from: ServiceRow, copyId: string, content: ContentOfCopy) {
  const { organization_id, id: source_id, name: source_name } = from;
  const backup_id = content === 'COPY' ? await addForCopy(context, from) : null;
  await insertFill(context.db, { database_id: copyId, organization_id, source_id, source_name, backup_id });
  const copy = (await findServiceById(context.db, [organization_id], copyId))!;
  await audit(context, {
    organizationId: organization_id,
    type: 'IMPORT',
    ...placeOfService(copy),
    after: { id: copyId, name: copy.name, filled_from: source_id, content },
  });
}

/** Requests the backup that a copy is filled with; null where the source does not run. */
const addForCopy = async (context: Context, source: ServiceRow): Promise<string | null> =>
  source.wanted === 'running' && source.handle !== null
    ? addBackup(context, source, {
        name: `For a copy of ${source.name}`,
        message: 'Removed once the copy is filled.',
        origin: 'FOR_COPY',
      })
    : null;

/**
 * Loads what a copy is to be filled with, once its server has started and before later stages. The deployment's claim fences it: a further
 * attempt begins anew. One that was deployed before stays as it is.
 */
export const fillFirst: NonNullable<KindHooks<DatabaseSpec>['afterDeployment']> = async (
  context,
  service,
  deployed,
) => {
  const { organizationId, log, handle, isFirst } = deployed;
  const fill = await findOpenFill(context.db, { organizationId }, service.serviceId);
  if (!fill) return handle;
  if (!isFirst) {
    log(`It was deployed before it could be filled with the content of ${fill.source_name}, and stays as it is.`);
    await recordFill(context.db, fill, 'ended_at');
    return handle;
  }
  const backup = await awaitBackup(context, fill, deployed);
  const filled = backup ? await load(context, service.spec, { fill, backup, ...deployed }) : handle;
  if (!backup) log(`${fill.source_name} has no backup: the database starts empty.`);
  await recordFill(context.db, fill, 'ended_at');
  if (backup && fill.backup_id !== null) await deleteBackup(context.db, { organizationId }, backup.id);
  return filled;
};

type Deployed = Parameters<NonNullable<KindHooks['afterDeployment']>>[2];

/**
 * Returns the backup to load, once it is made; undefined if the source has none. Throws an error for people if it could not be made: the
 * next deployment has another one.
 */
async function awaitBackup(context: Context, fill: FillRow, { log, signal }: Deployed): Promise<BackupRow | undefined> {
  const { db } = context;
  const { source_id, source_name, backup_id, organization_id: organizationId } = fill;
  if (backup_id === null) return findLastBackup(db, { organizationId }, source_id);
  for (let looks = 0; ; looks++) {
    const backup = await findBackup(db, [organizationId], backup_id);
    if (!backup) return findLastBackup(db, { organizationId }, source_id);
    if (backup.status === 'READY') return backup;
    if (backup.status === 'FAILED') {
      const source = await findServiceById(db, [organizationId], source_id);
      const next = source ? await addForCopy(context, source) : null;
      await renewBackup(db, fill, next);
      throw new Error(
        `The content of ${source_name} cannot be copied, as its backup failed: ${backup.error} Deploy again: ${next ? 'another one is made' : 'the last one that there is will be loaded'}.`,
      );
    }
    if (looks % (TOLD_MS / LOOK_MS) === 0) log(`Waiting for a backup of ${source_name}.`);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** Passes a stream on and counts its bytes. */
async function* counted(stream: Readable, add: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const part of stream as AsyncIterable<Buffer>) {
    add(part.length);
    yield part;
  }
}

async function load(
  context: Context,
  spec: DatabaseSpec,
  { fill, backup, runtime, handle, nodeId, log, signal }: Deployed & { fill: FillRow; backup: BackupRow },
) {
  const { organization_id: organizationId, database_id: id } = fill;
  const database = await findServiceById(context.db, [organizationId], id);
  if (!database) throw new Error('The database is gone.');
  await refuseForkRestore(context, database, backup);
  requireReadable(spec, backup);
  const made = `${backup.created_at.toISOString().slice(0, 19)}Z`;
  log(`Loading the content of ${fill.source_name} from its backup of ${made}.`);
  const file = await fileOf(context, backup);
  const removeFetched = await fetchMissing(context, backup, signal);
  let present = handle;
  let bytes = 0;
  let told = 0;
  const telling = setInterval(() => {
    if (bytes > told) log(`Loaded ${bytes} bytes so far.`);
    told = bytes;
  }, TOLD_MS);
  try {
    await verifyBackup(file);
    const credentials = await openCredentials(context, organizationId, id, spec.access);
    const restoration = {
      dump: () =>
        Readable.from(
          counted(readBackup(file), (more) => void (bytes += more)),
          { objectMode: false },
        ),
      isLoaded: fill.loaded_at !== null,
      // Runtimes ignore requests with a number below the generation of the release.
      asked: handle.identity.generation + fill.created_at.getTime(),
      loaded: async () => void (await recordFill(context.db, fill, 'loaded_at')),
      restarted: async (next: typeof handle) => void (present = next),
    };
    await restoreFrom({ runtime, handle, tools: editionOfSpec(spec).backup, credentials }, restoration, signal);
  } finally {
    clearInterval(telling);
    if (backup.node_id !== nodeId) await removeFetched();
  }
  log('The content is loaded.');
  return present;
}
