import { performance } from 'node:perf_hooks';
import { afterAll, expect, vi } from 'vitest';

/**
 * Setup file of a project whose test files share one process (`isolate: false`): a file that leaves something behind which the next one
 * could trip over fails. Runs before each file; its `afterAll` runs after all others of the file.
 */

/** Resources that end by themselves. */
const PASSING = new Set(['Immediate', 'TickObject']);

/** Listeners that libraries add once as they are loaded, and that no other file can hear. */
const PASSING_EVENTS = new Set(['exit']);

/** Share of a moment in which a process may be busy that has nothing to do: what goes on without end takes all of it. */
const MOST_BUSY = 0.9;

const environment = { ...process.env };
const folder = process.cwd();
const listeners = countListeners();
const globals = new Set(Object.getOwnPropertyNames(globalThis));
const resources = countResources();
const intervals = watchIntervals();

afterAll(async () => {
  const hasFakeTimers = vi.isFakeTimers();
  vi.useRealTimers();
  intervals.stop();
  // An unref'd timer, so that it is not among the counted ones.
  let isBusy = true;
  for (let tries = 0; tries < 100 && (isBusy || openResources().length > 0); tries++) {
    const before = performance.eventLoopUtilization();
    await new Promise((resolve) => setTimeout(resolve, 20).unref());
    isBusy = performance.eventLoopUtilization(before).utilization > MOST_BUSY;
  }
  expect(
    {
      folder: process.cwd(),
      changedVariables: changedVariables(),
      newGlobals: Object.getOwnPropertyNames(globalThis).filter((name) => !globals.has(name)),
      newListeners: increases(listeners, countListeners()),
      openResources: openResources(),
      runningIntervals: intervals.left(),
      hasFakeTimers,
      isBusy,
    },
    'The test file leaves state behind in the process that the next file runs in',
  ).toEqual({
    folder,
    changedVariables: [],
    newGlobals: [],
    newListeners: [],
    openResources: [],
    runningIntervals: [],
    hasFakeTimers: false,
    isBusy: false,
  });
});

/** Returns names only: the values may be secrets of the machine. */
function changedVariables(): string[] {
  const names = new Set([...Object.keys(environment), ...Object.keys(process.env)]);
  return [...names].filter((name) => environment[name] !== process.env[name]);
}

function countListeners(): Map<string, number> {
  const events = process.eventNames().filter((name) => !PASSING_EVENTS.has(String(name)));
  return new Map(events.map((name) => [String(name), process.listenerCount(name)]));
}

/** Counts what keeps this process running: sockets, servers, child processes, timers, file watchers. */
function countResources(): Map<string, number> {
  const types = process.getActiveResourcesInfo().filter((type) => !PASSING.has(type));
  return new Map([...new Set(types)].map((type) => [type, types.filter((other) => other === type).length]));
}

const openResources = (): string[] => increases(resources, countResources());

/** Returns the names whose number has grown, as `name: increase`. */
const increases = (before: Map<string, number>, now: Map<string, number>): string[] =>
  [...now]
    .map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    .filter(([, increase]) => increase > 0)
    .map(([name, increase]) => `${name}: ${increase}`);

/** Notes where intervals are started; `left` returns the lines of those that still run, also unref'd ones. */
function watchIntervals(): { left(): string[]; stop(): void } {
  const original = globalThis.setInterval;
  const started: { timer: NodeJS.Timeout; line: string }[] = [];
  const start = (...given: Parameters<typeof setInterval>): NodeJS.Timeout => {
    const timer = original(...given);
    started.push({ timer, line: new Error('started').stack?.split('\n')[2]?.trim() ?? 'unknown' });
    return timer;
  };
  globalThis.setInterval = Object.assign(start, original);
  return {
    stop: () => void (globalThis.setInterval = original),
    left: () => started.filter(({ timer }) => isRunning(timer)).map(({ line }) => line),
  };
}

/** Node sets `_destroyed` on a timer that was cleared; there is no public name for it. */
const isRunning = (timer: NodeJS.Timeout): boolean => !(timer as unknown as { _destroyed: boolean })._destroyed;
