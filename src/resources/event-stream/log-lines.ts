import { readLogChunks, type DeploymentLine } from '#deployments/index.ts';
import type { Database } from '#platform/database/index.ts';
import type { StreamFilter, StreamRow } from '#platform/events/stream.ts';

interface Waiting {
  row: StreamRow;
  resolve(lines: DeploymentLine[]): void;
  reject(error: unknown): void;
}

/** Reads the text of log events for one stream, those that are asked for together in one statement. */
export class LogLines {
  readonly #db: Database;
  readonly #filter: StreamFilter;
  #waiting: Waiting[] = [];

  constructor(db: Database, filter: StreamFilter) {
    this.#db = db;
    this.#filter = filter;
  }

  /** The lines that the stream is about; none where the log is gone. */
  of(row: StreamRow): Promise<DeploymentLine[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject });
      if (this.#waiting.length === 1) queueMicrotask(() => void this.#read());
    });
  }

  async #read(): Promise<void> {
    const asked = this.#waiting;
    this.#waiting = [];
    const { serviceId } = this.#filter;
    try {
      const chunks = asked.map(({ row }) => ({
        deploymentId: row.deployment_id!,
        sequence: row.data.sequence as number,
      }));
      const found = await readLogChunks(this.#db, this.#filter, chunks);
      for (const [index, { resolve }] of asked.entries())
        resolve((found[index] ?? []).filter((line) => serviceId === undefined || line.serviceId === serviceId));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}
