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

/** Text of one MiB, with the milliseconds in which an idle machine reads and writes it. */
const KNOWN_WORK = JSON.stringify(
  Array.from({ length: 20_000 }, (_, id) => ({ id, name: `name ${id}`, list: [id, `${id}`] })),
);
const KNOWN_WORK_MS = 20;

/**
 * Returns how many times longer known work takes at the moment than on a machine with nothing else to do. Processor time grows where
 * others use the same core or its caches.
 */
function slowness(): number {
  const times = Array.from({ length: 5 }, () => {
    const before = worked();
    JSON.stringify(JSON.parse(KNOWN_WORK));
    return worked() - before;
  });
  return Math.max(1, times.sort((a, b) => a - b)[2]! / KNOWN_WORK_MS);
}

/**
 * Returns the least of several measurements of the same work, as on an idle machine. Garbage collection may fall into any of them. Ends with the
 * first that is short enough.
 */
export async function leastBlockedBy(work: () => Promise<unknown>, tries = 8): Promise<number> {
  let least = Infinity;
  for (let at = 0; at < tries && least > LONGEST_BLOCK_MS; at++) {
    const blocked = await blockedBy(work);
    least = Math.min(least, blocked > LONGEST_BLOCK_MS ? blocked / slowness() : blocked);
  }
  return least;
}
