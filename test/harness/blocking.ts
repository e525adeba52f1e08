/** Longest time for which a request or file may block the event loop, in milliseconds. */
export const LONGEST_BLOCK_MS = 50;

/** Returns the processor time of this thread in milliseconds: other load of the machine does not count. */
const worked = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** Returns the longest processor time of this thread between two turns of the event loop, in milliseconds. */
async function blockedBy(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = worked();
  const look = () => {
    const now = worked();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  try {
    await work();
    look();
  } finally {
    clearInterval(timer);
  }
  return longest;
}

/**
 * Returns the least of several measurements of the same work, since garbage collection may fall into any of them. Ends with the first that
 * is short enough.
 */
export async function leastBlockedBy(work: () => Promise<unknown>, tries = 8): Promise<number> {
  let least = Infinity;
  for (let at = 0; at < tries && least > LONGEST_BLOCK_MS; at++) least = Math.min(least, await blockedBy(work));
  return least;
}
