import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** Limit of a payload: PostgreSQL refuses long ones, and payloads here are keys, not data. */
const MAX_PAYLOAD_BYTES = 1000;
/** Milliseconds from one batch of messages to the next: each costs a statement and wakes every connection that listens. */
const GAP_MS = 10;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
const HEARTBEAT_MS = 10_000;
const HEARTBEAT_TIMEOUT_MS = 5_000;

/** Wakes listeners of a channel, in this process and in others. A wake-up may be lost: listeners poll as well. */
export interface Notifier {
  /** Call it after the commit. Equal messages that wait together go out once. */
  notify(channel: string, payload?: string): void;
  /** Resolves when everything that was asked for so far is sent or has failed. */
  flush(): Promise<void>;
}

/** Connection that a notifier sends its statements over. */
interface Sender {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * A notifier on a pool. Messages of one process are sent at once, or gathered where others were sent just before, in one
 * statement outside the transactions that they tell of: a NOTIFY inside each of them costs half of the throughput.
 * `onError` hears of a batch that could not be sent.
 */
export function createNotifier(pool: Sender, onError: (error: unknown) => void = () => undefined): Notifier {
  let waiting = new Map<string, [channel: string, payload: string]>();
  let sending: Promise<void> | undefined;
  const send = async (): Promise<void> => {
    await Promise.resolve(); // What is said in the same turn goes out together.
    while (waiting.size > 0) {
      const batch = [...waiting.values()];
      waiting = new Map();
      try {
        await pool.query(
          'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as t(channel, payload)',
          [batch.map(([channel]) => channel), batch.map(([, payload]) => payload)],
        );
      } catch (error) {
        onError(error);
      }
      await sleep(GAP_MS);
    }
    sending = undefined;
  };
  return {
    notify: (channel, payload = '') => {
      if (Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES)
        throw new Error(
          `A payload for ${channel} is larger than ${MAX_PAYLOAD_BYTES} bytes: send a key, not the data.`,
        );
      waiting.set(JSON.stringify([channel, payload]), [channel, payload]);
      sending ??= send();
    },
    flush: async () => sending,
  };
}

export interface Listener {
  /** Resolves with the first connection. */
  ready: Promise<void>;
  close(): Promise<void>;
}

/**
 * Listens on channels over a connection of its own, which must not go through a pooler. A connection that breaks or
 * stops answering is made anew. `onMessage` is called for each message, and with an empty payload for every channel
 * after each connection, because messages may have been missed: look at everything then.
 */
export function createListener(
  config: pg.ClientConfig,
  channels: string[],
  onMessage: (channel: string, payload: string) => void,
  onError: (error: unknown) => void = () => undefined,
): Listener {
  const listener = new ReconnectingListener(config, channels, onMessage, onError);
  return { ready: listener.ready, close: () => listener.close() };
}

class ReconnectingListener {
  readonly ready: Promise<void>;
  readonly #config: pg.ClientConfig;
  readonly #channels: string[];
  readonly #onMessage: (channel: string, payload: string) => void;
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #connected!: () => void;

  constructor(
    config: pg.ClientConfig,
    channels: string[],
    onMessage: (channel: string, payload: string) => void,
    onError: (error: unknown) => void,
  ) {
    this.#config = config;
    this.#channels = channels;
    this.#onMessage = onMessage;
    this.#onError = onError;
    this.ready = new Promise((resolve) => (this.#connected = resolve));
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let wait = FIRST_RETRY_MS;
    while (!signal.aborted) {
      try {
        await this.#listen(() => (wait = FIRST_RETRY_MS));
      } catch (error) {
        this.#onError(error);
      }
      await pause(wait, signal);
      wait = Math.min(wait * 2, LONGEST_RETRY_MS);
    }
  }

  /** Listens on one connection until it ends. Throws the error that it ended with, unless it was closed. */
  async #listen(onConnected: () => void): Promise<void> {
    const { signal } = this.#closing;
    const client = new pg.Client({
      application_name: 'quarterdeck listener',
      keepAlive: true,
      ...this.#config,
      connectionTimeoutMillis: HEARTBEAT_TIMEOUT_MS,
      query_timeout: HEARTBEAT_TIMEOUT_MS,
    });
    const broken = new Promise<never>((_, reject) => {
      client.on('error', reject);
      client.on('end', () => reject(new Error('The connection that listens has ended.')));
    });
    broken.catch(() => undefined); // Awaited below, once the connection stands.
    client.on('notification', ({ channel, payload }) => this.#onMessage(channel, payload ?? ''));
    try {
      await client.connect();
      for (const channel of this.#channels) await client.query(`listen ${client.escapeIdentifier(channel)}`);
      onConnected();
      this.#connected();
      for (const channel of this.#channels) this.#onMessage(channel, '');
      while (!signal.aborted) {
        await Promise.race([broken, pause(HEARTBEAT_MS, signal)]);
        if (!signal.aborted) await client.query('select 1');
      }
    } finally {
      client.removeAllListeners('notification');
      await endQuietly(client);
    }
  }
}

/** Ends a client whose connection may be dead already: then there is nothing left to end. */
export async function endQuietly(client: pg.Client): Promise<void> {
  const ended = client.end().catch(() => undefined);
  await Promise.race([ended, pause(1_000, new AbortController().signal)]);
}

/** Waits, at most until the signal. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}
