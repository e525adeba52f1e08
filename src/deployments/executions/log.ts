import { gunzipSync, gzipSync } from 'node:zlib';
import type { Database, Scope } from '#platform/database/index.ts';
import { readDeploymentLog } from '#deployments/logs/reader.ts';

/** One line that an execution wrote. */
export interface ExecutionLine {
  /** RFC 3339 with milliseconds. */
  at: string;
  text: string;
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

  /** What waits to be stored. */
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

/** The last lines of an execution, oldest first: of a schedule's its own, of a deployment's those of its step. */
export const readExecutionLog = async (
  db: Database,
  scope: Scope,
  execution: LoggedExecution,
  tail: number,
): Promise<ExecutionLine[]> => (await readExecutionLogAfter(db, scope, execution, 0)).lines.slice(-tail);

/** The lines after a chunk, with the sequence of the last chunk read. */
export async function readExecutionLogAfter(
  db: Database,
  scope: Scope,
  execution: LoggedExecution,
  after: number,
): Promise<{ lines: ExecutionLine[]; last: number }> {
  if (execution.deployment_id !== null) {
    const { lines, last } = await readDeploymentLog(db, scope, execution.deployment_id, after);
    const own = lines.filter((line) => line.serviceId === execution.service_id && line.step === 'EXECUTING');
    return { lines: own.map(({ at, text }) => ({ at, text })), last };
  }
  const chunks = await db
    .selectFrom('job_execution_log')
    .select(['sequence', 'content'])
    .where('organization_id', '=', scope.organizationId)
    .where('execution_id', '=', execution.id)
    .where('sequence', '>', after)
    .orderBy('sequence')
    .execute();
  const lines = chunks.flatMap(({ content }) => gunzipSync(content).toString().split('\n'));
  return { lines: lines.map((line) => JSON.parse(line) as ExecutionLine), last: chunks.at(-1)?.sequence ?? after };
}
