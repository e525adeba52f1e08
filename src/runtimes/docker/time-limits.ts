import { anySignal } from '#kernel/lease-signal.ts';
import type Docker from 'dockerode';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Seconds within which an engine begins to answer what it has at hand, and what may copy files or end processes. */
const QUICK_SECONDS = 60;
const SLOW_SECONDS = 180;

/** Calls whose answer may take as long as it takes: their callers end them by signals. */
const UNLIMITED = [
  // The context is read, the image's layers are fetched.
  /^\/build\?/,
  /^\/images\/create\?/,
  // Answered when a container ends, or with its output.
  /^\/containers\/[^/]+\/(wait|attach|logs)\b/,
  /^\/events\?/,
  /^\/system\/df\b/,
  /^\/containers\/[^/]+\/archive\?/,
];
const SLOW = [/^\/containers\/create\?/, /^\/containers\/[^/]+\/start\b/, /^\/images\//];

/** What docker-modem is asked for. */
interface Dialled {
  path: string;
  method: string;
  options?: { t?: number };
  abortSignal?: AbortSignal;
}

/** Seconds that the engine has until its answer begins; null where there is no limit. */
export function secondsFor({ path, method, options }: Dialled): number | null {
  // `removed` is waited for after the removal has begun.
  if (/\/wait\?/.test(path) && (options as { condition?: string } | undefined)?.condition === 'removed')
    return SLOW_SECONDS;
  if (UNLIMITED.some((pattern) => pattern.test(path))) return null;
  if (/^\/containers\/[^/]+\/stop\?/.test(path)) return (options?.t ?? 10) + QUICK_SECONDS;
  return method === 'DELETE' || SLOW.some((pattern) => pattern.test(path)) ? SLOW_SECONDS : QUICK_SECONDS;
}

/** Gives each call of an engine's client a limit of time: an engine that takes a call and never answers would be waited for for ever. */
export function limitCalls(engine: Docker, secondsOf = secondsFor): Docker {
  const dial = engine.modem.dial.bind(engine.modem);
  engine.modem.dial = (given, callback) => {
    const call = given as Dialled;
    const seconds = secondsOf(call);
    if (seconds === null) return dial(given, callback);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), seconds * 1000);
    const signals = [late.signal, ...(call.abortSignal ? [call.abortSignal] : [])];
    dial({ ...call, abortSignal: anySignal(signals) }, (error, answer) => {
      clearTimeout(timer);
      callback?.(late.signal.aborted && error ? unanswered(call, seconds, error) : (error as never), answer);
    });
  };
  return engine;
}

const unanswered = ({ method, path }: Dialled, seconds: number, cause: unknown): RuntimeError =>
  new RuntimeError(
    'unreachable',
    `The container engine did not answer ${method} ${path.split('?', 1)[0]} within ${seconds} s: look whether it hangs, and start it again.`,
    cause,
  );
