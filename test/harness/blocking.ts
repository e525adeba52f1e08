/** No request and no file may hold up the event loop for longer. */
export const LONGEST_BLOCK_MS = 50;

/** Longest time between two turns of the event loop while work goes on, in milliseconds. */
async function blockedBy(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
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
 * The least of several measurements of the same work: what else the machine does delays this process now and then, what the work costs
 * delays it each time. Ends with the first that is short enough.
 */
export async function leastBlockedBy(work: () => Promise<unknown>, tries = 4): Promise<number> {
  let least = Infinity;
  for (let at = 0; at < tries && least > LONGEST_BLOCK_MS; at++) least = Math.min(least, await blockedBy(work));
  return least;
}
