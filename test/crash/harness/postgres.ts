import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClientConfig } from 'pg';
import { embeddedPostmaster, startEmbeddedPostgres } from '#platform/database/embedded.ts';
import { makeTemplate } from '#test/harness/database.ts';
import { until } from '#test/crash/harness/until.ts';

/** PostgreSQL of one test, which may kill it and cut its connections. */
export interface OwnPostgres {
  directory: string;
  /** Connection to its migrated database by its socket, past the relay. */
  direct: ClientConfig;
  /** Connection over the relay, which the service uses. */
  relayed: ClientConfig;
  relay: Relay;
  /** Stops it without waiting for its clients: `immediate` like a crash, `fast` in order. Resolves when it is gone. */
  end(how: 'immediate' | 'fast'): Promise<void>;
  start(): Promise<void>;
  /** Keeps a copy of the data, as a standby that receives nothing from here on. The server ends and starts for that. */
  cutStandbyOff(): Promise<void>;
  /** Kills it; the standby goes on in its place, on a timeline of its own. */
  failOver(): Promise<void>;
  readonly running: boolean;
  close(): Promise<void>;
}

export async function startOwnPostgres(
  folder = tmpdir(),
  parameters: Record<string, string> = {},
): Promise<OwnPostgres> {
  const directory = mkdtempSync(path.join(folder, 'qd-own-pg-'));
  chmodSync(directory, 0o755);
  const boot = () => startEmbeddedPostgres({ directory, parameters: { max_connections: '100', ...parameters } });
  const first = await boot();
  const database = await makeTemplate(first.config);
  const direct = { ...first.config, database };
  const relay = await startRelay(path.join(first.config.host!, '.s.PGSQL.5432'));
  const data = path.join(directory, 'data');
  const standby = path.join(directory, 'standby');
  const end = async (how: 'immediate' | 'fast'): Promise<void> => {
    process.kill(embeddedPostmaster(directory)!, how === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await until('PostgreSQL has ended', () => processesIn(data).length === 0);
  };
  return {
    directory,
    direct,
    relayed: { ...direct, host: '127.0.0.1', port: relay.port },
    relay,
    get running() {
      return processesIn(data).length > 0;
    },
    end,
    cutStandbyOff: async () => {
      await end('fast');
      execFileSync('cp', ['-a', '--', data, standby]);
      await boot();
    },
    failOver: async () => {
      await end('immediate');
      rmSync(data, { recursive: true });
      renameSync(standby, data);
      // It recovers what it has, and then begins its timeline as a promoted standby does.
      writeFileSync(path.join(data, 'recovery.signal'), '');
      appendFileSync(path.join(data, 'postgresql.auto.conf'), "restore_command = 'false'\n");
      await boot();
    },
    start: async () => void (await boot()),
    close: async () => {
      await relay.close();
      if (processesIn(data).length > 0) await (await boot()).stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const processesIn = (folder: string): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return (
          pid > 0 &&
          readlinkSync(`/proc/${pid}/cwd`) === folder &&
          !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
        );
      } catch {
        return false; // It has ended meanwhile.
      }
    });

/** Connection to a server that a test can cut. */
export interface Relay {
  port: number;
  /** `open` forwards; `cut` ends all connections and refuses new ones; `silent` takes everything and forwards nothing. */
  set(mode: 'open' | 'cut' | 'silent'): Promise<void>;
  /** Breaks each connection after this number of bytes from the server. */
  cutAfter(bytes: number): void;
  close(): Promise<void>;
}

/** Forwards a port of loopback to a unix socket or another port. */
export async function startRelay(to: string | number): Promise<Relay> {
  const pairs = new Set<[Socket, Socket]>();
  let silent = false;
  let most = Infinity;
  const server = createServer({ allowHalfOpen: false }, (incoming) => {
    const outgoing = typeof to === 'string' ? connect(to) : connect(to, '127.0.0.1');
    const pair: [Socket, Socket] = [incoming, outgoing];
    pairs.add(pair);
    let received = 0;
    outgoing.on('data', (data: Buffer) => (received += data.length) > most && incoming.destroy());
    if (!silent) join(pair);
    for (const socket of pair) {
      // Either end may break at any time: that is what this is for.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const endAll = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  const stop = () => new Promise<void>((resolve) => (server.listening ? server.close(() => resolve()) : resolve()));
  return {
    port,
    set: async (mode) => {
      silent = mode === 'silent';
      if (mode === 'cut') {
        const stopped = stop();
        endAll();
        return stopped;
      }
      if (!server.listening) await listen(port);
      for (const pair of pairs) (silent ? part : join)(pair);
    },
    cutAfter: (bytes) => void (most = bytes),
    close: async () => {
      const stopped = stop();
      endAll();
      await stopped;
    },
  };
}

function join([incoming, outgoing]: [Socket, Socket]): void {
  incoming.pipe(outgoing);
  outgoing.pipe(incoming);
}

function part([incoming, outgoing]: [Socket, Socket]): void {
  incoming.unpipe(outgoing);
  outgoing.unpipe(incoming);
  incoming.pause();
  outgoing.pause();
}
