import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Milliseconds between two looks at the use of the processor. */
const LOOK_MS = 5_000;
/** Share of a processor below which the process counts as idle. */
const IDLE_SHARE = 0.05;

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/**
 * Does, once there is nothing else to do, what would hold up requests: writes the compiled code for the next start, and gives back to the
 * machine what the start, or a burst of work, has left in the heap. V8 keeps that for the next burst and never looks again while nothing
 * is allocated. (Measured after a start: 40 MB of 110. It halts the process for some 50 ms, so it is done once per burst.)
 */
export function tidyWhenIdle(): void {
  let collect: Collect | undefined;
  let wanted = true;
  let used = process.cpuUsage();
  let at = performance.now();
  const look = () => {
    const { user, system } = process.cpuUsage(used);
    const share = (user + system) / 1000 / (performance.now() - at);
    if (share > IDLE_SHARE) wanted = true;
    else if (wanted) {
      wanted = false;
      flushCompileCache();
      collect ??= collector();
      collect({ type: 'major', flavor: 'last-resort' });
    }
    used = process.cpuUsage();
    at = performance.now();
  };
  setInterval(look, LOOK_MS).unref();
}

/** Node hands its collector out only on demand. */
function collector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as Collect;
}
