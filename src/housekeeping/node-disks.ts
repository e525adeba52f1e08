import { statfs } from 'node:fs/promises';
import { withDeadline } from '#kernel/deadline.ts';
import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { READ_ONLY_CODE } from '#platform/installation/index.ts';
import { Periodic } from '#platform/work/periodic.ts';

/** Milliseconds between two looks. Alert rules take a measurement for the present for five minutes. */
const LOOK_MS = 60_000;
/** Seconds in which the file system has to answer. */
const ANSWER_SECONDS = 20;

/** Disk of a machine by what lies on it: the data directory, or the storage of a container engine. */
export type DiskFolder = { holds: 'DATA' | 'ENGINE'; folder: string };

interface Parts {
  platform: Pick<Platform, 'db' | 'log'>;
  nodeId: string;
  /** Returns the folders whose disks are looked at. */
  folders(): DiskFolder[];
}

/** Records every minute how full the disks of this machine are: all machines' alert rules read that from the database. */
export class NodeDisks {
  readonly #parts: Parts;
  readonly #abort = new AbortController();
  readonly #looks: Periodic;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#looks = new Periodic(
      LOOK_MS,
      () => this.record(),
      (error) => {
        // A restored installation that awaits its operator writes nothing.
        if (this.#abort.signal.aborted || (error as { code?: string }).code === READ_ONLY_CODE) return;
        parts.platform.log.warn({ err: error }, 'cannot record how full the disks of this machine are');
      },
    );
  }

  start(): void {
    this.#looks.start();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#looks.stop();
  }

  /** Measures and stores all disks, or none where one of them cannot be measured. */
  async record(): Promise<void> {
    const { platform, nodeId, folders } = this.#parts;
    const disks: Disk[] = [];
    for (const { holds, folder } of folders()) disks.push({ holds, ...(await this.#measure(folder)) });
    await saveNodeDisks(platform.db, nodeId, disks);
  }

  /** Returns what an ordinary user could have of a disk, and has left: their ratio is that of `df`. */
  async #measure(folder: string): Promise<Omit<Disk, 'holds'>> {
    const late = (cause: unknown) =>
      new Error(`The disk of ${folder} did not answer within ${ANSWER_SECONDS} s.`, { cause });
    const options = { seconds: ANSWER_SECONDS, patience: () => 0, late };
    const { blocks, bfree, bavail, bsize } = await withDeadline(this.#abort.signal, options, () => statfs(folder));
    return { total_bytes: (blocks - bfree + bavail) * bsize, free_bytes: bavail * bsize };
  }
}

interface Disk {
  holds: DiskFolder['holds'];
  total_bytes: number;
  free_bytes: number;
}

/** Stores how full the disks of a machine are. One that is not measured for an hour, such as that of an engine that is gone, is forgotten. */
async function saveNodeDisks(db: Database, nodeId: string, disks: Disk[]): Promise<void> {
  // A machine that was forgotten while it was away is made anew by its next sign of life.
  await sql`insert into node_disk (node_id, holds, total_bytes, free_bytes)
    select n.id, given.holds, given.total_bytes, given.free_bytes
    from jsonb_to_recordset(${JSON.stringify(disks)}::jsonb) as given(holds text, total_bytes bigint, free_bytes bigint)
      join node n on n.id = ${nodeId}
    on conflict (node_id, holds) do update set total_bytes = excluded.total_bytes, free_bytes = excluded.free_bytes,
      measured_at = excluded.measured_at`.execute(db);
  await sql`delete from node_disk where node_id = ${nodeId} and measured_at < now() - interval '1 hour'`.execute(db);
}
