import { withBase } from '#cli/base.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { printTable } from '#cli/table.ts';
import {
  checkCopy,
  CopyStore,
  fetchCopy,
  makeCopy,
  removeOldCopies,
  type CopySource,
  type StoredCopy,
} from '#platform/copies/index.ts';
import type { Settings } from '#platform/settings/index.ts';

/** A command asks for as long as it takes: Ctrl-C ends it. */
const NEVER = new AbortController().signal;

/** Opens the store of the settings. Throws an error that says how to name one. */
function openStore(settings: Settings): Promise<CopyStore> {
  if (!settings.copiesUrl)
    throw new Error(
      'There is no store: set QUARTERDECK_COPIES_URL to a bucket, such as https://s3.eu-west-3.amazonaws.com/bucket.',
    );
  return CopyStore.open(settings, NEVER);
}

/** Lists the copies in the store, of every installation that sends some there. */
export async function listCopiesCommand(settings: Settings): Promise<void> {
  const copies = await (await openStore(settings)).list();
  if (copies.length === 0) return print('There is no copy yet.');
  printTable([
    ['taken', 'size', 'name'],
    ...copies.map(({ takenAt, bytes, name }) => [takenAt.toISOString(), megabytes(bytes), name]),
  ]);
}

/** Makes a copy now, and removes those that are too old. */
export async function makeCopyCommand(settings: Settings): Promise<void> {
  const store = await openStore(settings);
  await withSource(settings, 'Making a copy', async (source) => {
    const copy = await makeCopy(source, store);
    const old = await removeOldCopies(source, store, copy.installationId, new Date());
    return [
      `Stored ${copy.name} (${megabytes(copy.bytes)}).`,
      'It is encrypted with the key of the vault, which is not in it: keep the key file elsewhere.',
      ...(old.length > 0 ? [`Removed ${old.length} that were older than ${settings.copyDays} days.`] : []),
    ];
  });
}

/** Restores a copy into a scratch database. */
export async function checkCopyCommand(settings: Settings, name: string): Promise<void> {
  const store = await openStore(settings);
  const copy = await findCopy(store, name);
  await withSource(settings, 'Restoring the copy into a scratch database', async (source) => {
    const manifest = await checkCopy(source, store, copy.name);
    const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
    return [`${copy.name} is good: ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.takenAt}.`];
  });
}

/** Writes the backup in a copy into a file. It needs the key file and the settings of the store, and no database. */
export async function fetchCopyCommand(settings: Settings, name: string, file: string): Promise<void> {
  const store = await openStore(settings);
  const copy = await findCopy(store, name);
  const progress = new Progress();
  progress.show('Fetching the copy');
  await fetchCopy({ settings, signal: NEVER }, store, copy.name, file).finally(() => progress.clear());
  print(`${copy.name} is in ${file}. Load it with \`quarterdeck restore ${file}\`.`);
}

async function withSource(settings: Settings, step: string, work: (source: CopySource) => Promise<string[]>) {
  await withBase(settings, async ({ database, directConfig }) => {
    const progress = new Progress();
    progress.show(step);
    const lines = await work({ settings, db: database.db, directConfig, signal: NEVER }).finally(() =>
      progress.clear(),
    );
    print(lines.join('\n'));
  });
}

/** Finds a copy by its name, or the newest one. Throws if there is none, or if `latest` could mean several installations. */
async function findCopy(store: CopyStore, name: string): Promise<StoredCopy> {
  const copies = await store.list();
  const [newest] = copies;
  if (!newest) throw new Error('There is no copy in the store.');
  if (name === 'latest') {
    if (copies.some(({ installationId }) => installationId !== newest.installationId))
      throw new Error('Several installations have copies there: name one of `quarterdeck copy list`.');
    return newest;
  }
  const found = copies.find((copy) => copy.name === name);
  if (!found) throw new Error(`There is no copy ${name}: \`quarterdeck copy list\` names them.`);
  return found;
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
