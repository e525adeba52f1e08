import { gzipSync } from 'node:zlib';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { linesOf, type StoredChunk } from '#deployments/logs/reader.ts';
import type { DeploymentLine } from '#deployments/logs/writer.ts';

/** Line that an execution wrote. */
interface ExecutionLine {
  /** RFC 3339 with milliseconds. */
  at: string;
  text: string;
}

/** Stored line with its position in the log of its execution, for what follows it. */
export interface PlacedLine extends ExecutionLine {
  /** Sequence of its chunk. */
  sequence: number;
  /** Number of the line among the execution's lines of that chunk, from 0. */
  index: number;
}

/** Bytes of a chunk before compression, and of a whole execution. */
const CHUNK_BYTES = 64 * 1024;
const TOTAL_BYTES = 5 * 1024 * 1024;
const FULL = 'The log has 5 MB: what follows is left out.';

export interface LogChunk {
  sequence: number;
  content: Buffer;
  lines: number;
}

/** Collects the lines of an execution into compressed chunks; the caller stores them. */
export class ExecutionLog {
  #sequence = 0;
  #pending: string[] = [];
  #pendingBytes = 0;
  #totalBytes = 0;

  /** Answers whether there is a whole chunk to be stored. */
  write(text: string): boolean {
    if (this.#totalBytes > TOTAL_BYTES) return false;
    const line = this.#push(text);
    if (this.#totalBytes > TOTAL_BYTES) {
      this.#pending.splice(this.#pending.indexOf(line), 1);
      this.#push(FULL);
    }
    return this.#pendingBytes >= CHUNK_BYTES;
  }

  #push(text: string): string {
    const line = JSON.stringify({ at: new Date().toISOString(), text } satisfies ExecutionLine);
    this.#pending.push(line);
    this.#pendingBytes += Buffer.byteLength(line);
    this.#totalBytes += Buffer.byteLength(line);
    return line;
  }

  /** Takes the pending lines as a compressed chunk, for the caller to store; undefined if there are none. */
  take(): LogChunk | undefined {
    if (this.#pending.length === 0) return undefined;
    const lines = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    return { sequence: ++this.#sequence, content: gzipSync(lines.join('\n')), lines: lines.length };
  }
}

interface LoggedExecution {
  id: string;
  deployment_id: string | null;
  service_id: string;
}

/** Chunks of an execution that are read at once. */
const CHUNKS_AT_ONCE = 16;

/**
 * Reads the last lines of an execution, oldest first: of a schedule's its own, of a deployment's those of its step. It goes back from the end,
 * only as far as there are lines to be found. `last` is the sequence of the last chunk, for what follows.
 */
export async function readExecutionLog(
  db: Database,
  scope: Scope,
  execution: LoggedExecution,
  tail: number,
): Promise<{ lines: PlacedLine[]; last: number }> {
  let found: PlacedLine[] = [];
  let last = 0;
  for (let before: number | undefined; found.length < tail;) {
    const chunks = await readChunks(db, scope, execution, { before });
    if (chunks.length === 0) break;
    before = chunks[0]!.sequence;
    last = Math.max(last, chunks.at(-1)!.sequence);
    found = [...(await ownLines(execution, chunks)), ...found];
  }
  return { lines: found.slice(-tail), last };
}

/** Reads the next lines after a chunk, with the sequence of the last chunk read; `hasMore` if there may be others behind it. */
export async function readExecutionLogAfter(
  db: Database,
  scope: Scope,
  execution: LoggedExecution,
  after: number,
): Promise<{ lines: PlacedLine[]; last: number; hasMore: boolean }> {
  const chunks = await readChunks(db, scope, execution, { after });
  return {
    lines: await ownLines(execution, chunks),
    last: chunks.at(-1)?.sequence ?? after,
    hasMore: chunks.length === CHUNKS_AT_ONCE,
  };
}

/** Reads at most 16 chunks of an execution, oldest first: the next ones after one, or the nearest ones before one. */
async function readChunks(
  db: Database,
  scope: Scope,
  execution: LoggedExecution,
  { after, before }: { after?: number; before?: number | undefined },
): Promise<StoredChunk[]> {
  const { id, deployment_id: deploymentId } = execution;
  const [table, key] =
    deploymentId === null
      ? [sql`job_execution_log`, sql`execution_id = ${id}`]
      : [sql`deployment_log`, sql`deployment_id = ${deploymentId}`];
  const chunks = sql`select sequence, content from ${table} where organization_id = ${scope.organizationId} and ${key}`;
  if (after !== undefined)
    return (
      await sql<StoredChunk>`${chunks} and sequence > ${after} order by sequence limit ${CHUNKS_AT_ONCE}`.execute(db)
    ).rows;
  const earlier = before === undefined ? chunks : sql`${chunks} and sequence < ${before}`;
  const { rows } = await sql<StoredChunk>`${earlier} order by sequence desc limit ${CHUNKS_AT_ONCE}`.execute(db);
  return rows.reverse();
}

async function ownLines(execution: LoggedExecution, chunks: StoredChunk[]): Promise<PlacedLine[]> {
  const placed: PlacedLine[] = [];
  for (const chunk of chunks) {
    const lines = await linesOf<DeploymentLine>([chunk]);
    // The log of a schedule is the execution's own, and its lines name no service.
    const own =
      execution.deployment_id === null
        ? lines
        : lines.filter((line) => line.serviceId === execution.service_id && line.step === 'EXECUTING');
    placed.push(...own.map(({ at, text }, index) => ({ at, text, sequence: chunk.sequence, index })));
  }
  return placed;
}
