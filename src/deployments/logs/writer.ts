import { gzipSync } from 'node:zlib';
import { sql, type Database } from '#platform/database/index.ts';
import type { Claim } from '#deployments/executor/claims.ts';
import { FencedWrite } from '#deployments/executor/fenced-write.ts';

/** Line of a deployment's log, for people. */
export interface DeploymentLine {
  /** RFC 3339 with milliseconds. */
  at: string;
  serviceId: string | null;
  /** Step that it belongs to, or the deployment's own. */
  step: string;
  text: string;
  /** Set on the line that says why something failed. */
  error?: true;
}

/** Bytes of a chunk before compression, and of a whole deployment (docs/contributing/engine.md, *What people read*). */
const CHUNK_BYTES = 64 * 1024;
const TOTAL_BYTES = 50 * 1024 * 1024;
const FULL = 'The log has 50 MB: what follows is left out, but for errors.';
const FLUSH_MS = 250;

/** Bytes of a chunk before compression: gzip's own last four, least first. */
const UNPACKED = sql<number>`get_byte(content, octet_length(content) - 4) + 256 * get_byte(content, octet_length(content) - 3)
  + 65536 * get_byte(content, octet_length(content) - 2) + 16777216::bigint * get_byte(content, octet_length(content) - 1)`;

/** Masks secrets in text that comes in pieces; made by app/ (src/kernel/secrets-mask.ts). */
export type Mask = (text: string) => string;

/** Writes the log of one deployment in compressed chunks, in order, soon enough to be followed live. */
export class DeploymentLog {
  readonly #db: Database;
  readonly #claim: Claim;
  #sequence: number;
  #pending: string[] = [];
  #pendingBytes = 0;
  /** Before compression, with what earlier attempts wrote. */
  #totalBytes: number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** `last` is the number of the last chunk that is there, `bytes` what all of them hold. */
  constructor(db: Database, claim: Claim, last: number, bytes = 0) {
    this.#db = db;
    this.#claim = claim;
    this.#sequence = last;
    this.#totalBytes = bytes;
  }

  /** Goes on after the last chunk that an earlier attempt wrote. */
  static async resume(db: Database, claim: Claim): Promise<DeploymentLog> {
    const row = await db
      .selectFrom('deployment_log')
      .select([
        sql<number>`coalesce(max(sequence), 0)`.as('last'),
        sql<number>`coalesce(sum(${UNPACKED}), 0)::bigint`.as('bytes'),
      ])
      .where('organization_id', '=', claim.deployment.organization_id)
      .where('deployment_id', '=', claim.deployment.id)
      .executeTakeFirstOrThrow();
    return new DeploymentLog(db, claim, row.last, row.bytes);
  }

  /** Above 50 MB only what made something fail is still written. */
  write(line: Omit<DeploymentLine, 'at'>): void {
    const full = this.#totalBytes > TOTAL_BYTES;
    if (full && !line.error) return;
    const text = JSON.stringify({ at: new Date().toISOString(), ...line } satisfies DeploymentLine);
    this.#totalBytes += Buffer.byteLength(text);
    if (full || this.#totalBytes <= TOTAL_BYTES) return this.#push(text);
    const { serviceId, step } = line;
    const end: DeploymentLine = { at: new Date().toISOString(), serviceId, step, text: FULL };
    this.#push(JSON.stringify(end));
    if (line.error) this.#push(text);
  }

  #push(text: string): void {
    this.#pending.push(text);
    this.#pendingBytes += text.length;
    if (this.#pendingBytes >= CHUNK_BYTES) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  /** Writes what is pending; resolves when everything up to now is stored. Rejects when the claim is lost or the database refuses it. */
  flush(): Promise<void> {
    const chunk = this.#take();
    if (chunk) {
      this.#writing = this.#writing.then(async () => {
        const write = new FencedWrite(this.#db, this.#claim);
        write.add(chunk);
        await write.send();
      });
      // The caller that awaits drain() gets the error; a chunk written by the timer must not end the process.
      this.#writing.catch(() => undefined);
    }
    return this.#writing;
  }

  /** Waits for what is being written, and answers the insert of what is left, for a write of the caller. */
  async drain() {
    await this.#writing;
    return this.#take();
  }

  #take() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending.length === 0) return undefined;
    const lines = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    return this.#db.insertInto('deployment_log').values({
      deployment_id: this.#claim.deployment.id,
      organization_id: this.#claim.deployment.organization_id,
      sequence: ++this.#sequence,
      content: gzipSync(lines.join('\n')),
      lines: lines.length,
    });
  }
}
