import { Deadline, UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';

/** Seconds in which something of a volume must move: an engine that hangs does not hold a command for ever. */
const STALL_SECONDS = 300;
/** A command works for as long as something moves: Ctrl-C ends it. */
const NEVER = new AbortController().signal;

export interface Stalling {
  /** Volume, as the error names it. */
  name: string;
  seconds?: number;
  /** Seconds for a call to end when it was told to. */
  unwindSeconds?: number;
}

/** Yields what `read` yields. Throws Error if nothing comes for a while. */
export async function* readSteadily(
  stalling: Stalling,
  read: (signal: AbortSignal) => AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const deadline = new Deadline(NEVER, limitsOf(stalling));
  const chunks = read(deadline.signal)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await deadline.race(chunks.next());
      if (done) return;
      deadline.touch();
      yield value;
      deadline.touch();
    }
  } catch (error) {
    throw deadline.isOver ? stalled(stalling, error) : error;
  } finally {
    deadline.close();
    // A caller that leaves early ends the reading too, which gives back what it holds; one that hangs was told by the signal.
    if (!deadline.isOver) await chunks.return?.();
  }
}

/** Gives an archive to `write`. Throws Error if nothing of it is taken for a while, or its end is not answered. */
export const writeSteadily = (
  stalling: Stalling,
  archive: AsyncIterable<Buffer>,
  write: (archive: AsyncIterable<Buffer>, signal: AbortSignal) => Promise<void>,
): Promise<void> =>
  withDeadline(NEVER, { ...limitsOf(stalling), late: (error) => stalled(stalling, error) }, (deadline) =>
    write(touching(archive, deadline), deadline.signal),
  );

async function* touching(archive: AsyncIterable<Buffer>, deadline: Deadline): AsyncGenerator<Buffer> {
  for await (const chunk of archive) {
    deadline.touch();
    yield chunk;
  }
  deadline.touch();
}

/** Returns how an error names a volume. */
export const nameOf = ({ id }: { id: string }): string => `the volume of the storage ${id}`;

const limitsOf = ({ seconds = STALL_SECONDS, unwindSeconds = UNWIND_SECONDS }: Stalling) => ({
  seconds,
  patience: () => unwindSeconds,
});

const stalled = ({ name, seconds = STALL_SECONDS }: Stalling, cause: unknown): Error =>
  new Error(
    `Nothing of ${name} moved for ${seconds} s: its runtime hangs. Bring the runtime back, such as by a restart of the container engine.`,
    { cause },
  );
