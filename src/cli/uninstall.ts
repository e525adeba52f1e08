import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { lookAtWorld, withRuntimes } from '#app/inventory.ts';
import { createRuntimes } from '#app/runtimes.ts';
import { withBase } from '#cli/base.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { answersReady } from '#cli/running.ts';
import { findUnknown, removeFound } from '#clusters/inventory.ts';
import { forgetConnected, removeEverything, type OpenTombstone } from '#housekeeping/index.ts';
import { readRecord } from '#platform/move/record.ts';
import type { Settings } from '#platform/settings/index.ts';
import { createQuietLog } from '#platform/telemetry/log.ts';

export interface UninstallOptions {
  yes?: true;
  /** Go on although something cannot be reached or removed. */
  leaveUnreachable?: true;
}

/** Removes an installation: what it has deployed, its proxy and its data directory. Asks before, unless told not to. */
export async function uninstallCommand(settings: Settings, { yes, leaveUnreachable }: UninstallOptions): Promise<void> {
  const { dataDir } = settings;
  if (!existsSync(path.join(dataDir, 'node-id')))
    throw new Error(`There is no installation in ${dataDir}: set QUARTERDECK_DATA_DIR to its data directory.`);
  if (await answersReady(settings))
    throw new Error('The service runs: stop it first, by Ctrl-C or `systemctl disable --now quarterdeck`.');
  await withBase(settings, async ({ database: { db } }) => {
    const { services } = await db
      .selectFrom('service')
      .select((eb) => eb.fn.countAll<number>().as('services'))
      .executeTakeFirstOrThrow();
    print(plan(settings, Number(services)));
  });
  if (!yes && !(await isWanted())) throw new Error('Nothing was removed.');
  const progress = new Progress();
  const isMoved = readRecord(dataDir)?.state === 'moved';
  await withBase(settings, async (base) => {
    // Connected clusters are the new installation's, which has the same id.
    if (isMoved) await forgetConnected(base.database.db);
    const { unseen } = await lookAtWorld(base);
    if (unseen.length > 0 && !leaveUnreachable)
      throw new Error(
        `Nothing was removed, because some of it cannot be reached from here (\`--leave-unreachable\` leaves it):\n${unseen.join('\n')}`,
      );
    const tell = (left: number) => progress.show(`Removing what is deployed: ${left} left`);
    const left = await withRuntimes(base, undefined, async (runtimes) => {
      const open = await removeEverything({ ...base, runtimes }, tell);
      const unknown = await findUnknown({ ...base, runtimes });
      await removeFound(
        { ...base, runtimes },
        unknown.filter(({ clusterId }) => !isMoved || clusterId === null),
      );
      return open;
    }).finally(() => progress.clear());
    if (left.length === 0) return;
    const lines = left.map(lineOf).join('\n');
    if (!leaveUnreachable)
      throw new Error(
        `Some things could not be removed, and the data directory stays so that you can run this again:\n${lines}`,
      );
    print(`Left where it is:\n${lines}`);
  });
  await createRuntimes(settings, 'none', createQuietLog()).endProxy();
  if ([homedir(), import.meta.dirname].some((other) => isWithin(other, dataDir)))
    return print(
      `Removed. ${dataDir} has more in it than the installation: remove its files by hand.${remains(settings)}`,
    );
  await rm(dataDir, { recursive: true, force: true });
  print(`Removed, with ${dataDir}.${remains(settings)}`);
}

const isWithin = (file: string, folder: string): boolean => !path.relative(folder, file).startsWith('..');

const lineOf = ({
  kind,
  runtime,
  service_id: service,
  environment_id: environment,
  last_error: reason,
}: OpenTombstone) =>
  `${kind.toLowerCase()} ${service ?? environment} on ${runtime}: ${reason ?? 'it is still being removed'}`;

const plan = (settings: Settings, services: number): string =>
  [
    'This removes for good:',
    `- ${services} ${services === 1 ? 'service' : 'services'} with storage, images and backups of databases, and whatever else this installation has deployed`,
    '- the proxy of this machine',
    `- ${settings.dataDir}, with the key of the vault: without it no backup of the installation can be read`,
  ].join('\n');

/** Returns sentences about what is not removed. */
const remains = ({ databaseUrl, copiesUrl }: Settings): string =>
  [
    databaseUrl ? ' The database of DATABASE_URL is left: drop it.' : '',
    copiesUrl ? ` The copies in ${copiesUrl} are left.` : '',
    ' Remove the clone of Quarterdeck as well.',
  ].join('');

/** Asks on a terminal; without one nothing is wanted. */
async function isWanted(): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new Error('Nothing was removed: there is no terminal to ask on. `--yes` removes without asking.');
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return (await terminal.question('Type "uninstall" to go on: ')).trim() === 'uninstall';
  } finally {
    terminal.close();
  }
}
