/** No request and no file may hold up the event loop for longer. */
export const LONGEST_BLOCK_MS = 50;

/** Milliseconds that the processor has worked for this thread: what else the machine does is not in them. */
const worked = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** Longest work of this thread between two turns of the event loop, in milliseconds of the processor. */
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

/** The least of several measurements of the same work: garbage of others is collected now and then. Ends with the first that is short enough. */
export async function leastBlockedBy(work: () => Promise<unknown>, tries = 4): Promise<number> {
  let least = Infinity;
  for (let at = 0; at < tries && least > LONGEST_BLOCK_MS; at++) least = Math.min(least, await blockedBy(work));
  return least;
}
