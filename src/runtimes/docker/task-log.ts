import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { LogDemultiplexer } from './log-frames.ts';
import type { RawLine } from './log-frames.ts';

/** Seconds of overlap when reading resumes before the last line: streams are stamped separately, and may lag a little. */
const OVERLAP_SECONDS = 10;

/** Reports each line of a container's output exactly once, from the beginning, however often reading breaks off. */
export class TaskLog {
  readonly #container: Docker.Container;
  readonly #onLine: (text: string) => void;
  /** Engine's time stamp of the last reported line, by stream. */
  readonly #told: Record<RawLine['stream'], string> = { stdout: '', stderr: '' };

  constructor(container: Docker.Container, onLine: (text: string) => void) {
    this.#container = container;
    this.#onLine = onLine;
  }

  /** Reports new lines until the container ends or the engine breaks off (which may look the same). */
  async tell(signal: AbortSignal): Promise<void> {
    const before = { ...this.#told };
    const last = [before.stdout, before.stderr].sort().at(-1)!;
    const stream = await (this.#container.logs({
      follow: true,
      stdout: true,
      stderr: true,
      timestamps: true,
      ...(last === '' ? {} : { since: Math.floor(Date.parse(`${last}Z`) / 1000) - OVERLAP_SECONDS }),
      abortSignal: signal,
    } as never) as unknown as Promise<Readable>);
    const frames = new LogDemultiplexer((line) => {
      if (line.stamp <= before[line.stream]) return;
      this.#told[line.stream] = line.stamp;
      this.#onLine(line.text);
    });
    for await (const part of stream) frames.write(part as Buffer);
    frames.end();
  }
}
