import { anySignal } from '#kernel/lease-signal.ts';
import type { IncomingMessage } from 'node:http';
import { pipeline, Readable, Transform } from 'node:stream';
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
  /^\/containers\/[^/]+\/(wait|attach)\b/,
  /^\/events\?/,
  /^\/system\/df\b/,
];
const SLOW = [
  /^\/containers\/create\?/,
  /^\/containers\/[^/]+\/(start|archive|logs)\b/,
  /^\/images\//,
  /^\/build\/prune\b/,
];

/** What docker-modem is asked for. */
interface Dialled {
  path: string;
  method: string;
  options?: { t?: number; condition?: string; follow?: boolean };
  /** What is uploaded. */
  file?: string | Buffer | Readable;
  /** Whether the answer is handed on as a stream, and whether that is one of both directions. */
  isStream?: boolean;
  hijack?: boolean;
  abortSignal?: AbortSignal;
}

/** Seconds that the engine has until its answer begins, and for each part of a long one; null where there is no limit. */
export function secondsFor({ path, method, options = {} }: Dialled): number | null {
  // `removed` is waited for after the removal has begun.
  if (/\/wait\?/.test(path) && options.condition === 'removed') return SLOW_SECONDS;
  if (UNLIMITED.some((pattern) => pattern.test(path)) || options.follow) return null;
  if (/^\/containers\/[^/]+\/(stop|restart)\?/.test(path)) return (options.t ?? 10) + QUICK_SECONDS;
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
    let isAnswered = false;
    let timer = setTimeout(() => late.abort(), seconds * 1000);
    const renew = () => {
      clearTimeout(timer);
      // An engine may refuse an upload before it was given all of it.
      if (!isAnswered) timer = setTimeout(() => late.abort(), seconds * 1000);
    };
    const signals = [late.signal, ...(call.abortSignal ? [call.abortSignal] : [])];
    const limited = { ...call, abortSignal: anySignal(signals), ...uploadOf(call, renew) };
    dial(limited, (error, answer) => {
      isAnswered = true;
      clearTimeout(timer);
      if (!error && call.isStream && !call.hijack)
        limitSilence(answer as IncomingMessage, seconds, () => unanswered(call, seconds));
      callback?.(late.signal.aborted && error ? unanswered(call, seconds, error) : (error as never), answer);
    });
  };
  return engine;
}

/** What is uploaded, with a word about each part that the engine takes. */
function uploadOf({ file }: Dialled, onPart: () => void): Pick<Dialled, 'file'> {
  if (!(file instanceof Readable)) return {};
  const counted = new Transform({
    transform: (part, _encoding, done) => {
      onPart();
      done(null, part);
    },
  });
  // The call ends with the error that either of them has.
  pipeline(file, counted, () => undefined);
  return { file: counted };
}

/** Ends an answer when nothing more of it comes for that long. */
function limitSilence(answer: IncomingMessage, seconds: number, why: () => Error): void {
  const { socket } = answer;
  const giveUp = () => answer.destroy(why());
  socket.setTimeout(seconds * 1000, giveUp);
  // The connection is used again.
  for (const end of ['end', 'close']) answer.once(end, () => socket.setTimeout(0, giveUp));
}

const unanswered = ({ method, path }: Dialled, seconds: number, cause?: unknown): RuntimeError =>
  new RuntimeError(
    'unreachable',
    `The container engine did not answer ${method} ${path.split('?', 1)[0]} within ${seconds} s: look whether it hangs, and start it again.`,
    cause,
  );
