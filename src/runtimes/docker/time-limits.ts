import { anySignal } from '#kernel/lease-signal.ts';
import type { IncomingMessage } from 'node:http';
import { pipeline, Readable, Transform } from 'node:stream';
import type Docker from 'dockerode';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Seconds in which an engine begins to answer quick calls, and calls that copy files or end processes. */
const QUICK_SECONDS = 60;
const SLOW_SECONDS = 180;

/** Calls without a limit: their callers end them by signals. */
const UNLIMITED = [
  // The context is read, the image's layers are fetched or sent.
  /^\/build\?/,
  /^\/images\/create\?/,
  /^\/images\/.+\/push\?/,
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

/** Options of a call of docker-modem. */
interface Dialled {
  path: string;
  method: string;
  options?: { t?: number; condition?: string; follow?: boolean };
  /** Content to upload. */
  file?: string | Buffer | Readable;
  /** True if the answer is passed on as a stream. */
  isStream?: boolean;
  /** True if that stream is bidirectional. */
  hijack?: boolean;
  abortSignal?: AbortSignal;
}

/** Seconds until the engine's answer begins, and between parts of a long one; null for no limit. */
export function secondsFor({ path, method, options = {} }: Dialled): number | null {
  // `removed` is waited for after the removal has begun.
  if (/\/wait\?/.test(path) && options.condition === 'removed') return SLOW_SECONDS;
  if (UNLIMITED.some((pattern) => pattern.test(path)) || options.follow) return null;
  if (/^\/containers\/[^/]+\/(stop|restart)\?/.test(path)) return (options.t ?? 10) + QUICK_SECONDS;
  return method === 'DELETE' || SLOW.some((pattern) => pattern.test(path)) ? SLOW_SECONDS : QUICK_SECONDS;
}

/** Limits the time of each call of an engine's client: a call that an engine accepts and never answers would hang for ever. */
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

/** Wraps the upload of a stream; calls `onPart` for each part that the engine takes. */
function uploadOf({ file }: Dialled, onPart: () => void): Pick<Dialled, 'file'> {
  if (!(file instanceof Readable)) return {};
  const counted = new Transform({
    transform: (part, _encoding, done) => {
      onPart();
      done(null, part);
    },
  });
  // The call fails with the error of either stream.
  pipeline(file, counted, () => undefined);
  return { file: counted };
}

/** Ends an answer when nothing of it arrives for that long. */
function limitSilence(answer: IncomingMessage, seconds: number, why: () => Error): void {
  const { socket } = answer;
  const giveUp = () => answer.destroy(why());
  socket.setTimeout(seconds * 1000, giveUp);
  // The connection is reused, so its time-out is reset.
  for (const end of ['end', 'close']) answer.once(end, () => socket.setTimeout(0, giveUp));
}

const unanswered = ({ method, path }: Dialled, seconds: number, cause?: unknown): RuntimeError =>
  new RuntimeError(
    'unreachable',
    `The container engine did not answer ${method} ${path.split('?', 1)[0]} within ${seconds} s: look whether it hangs, and start it again.`,
    cause,
  );
