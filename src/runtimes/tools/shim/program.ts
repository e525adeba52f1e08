/**
 * Program of the shim: `node program.ts <directory>`, its ShimConfig as JSON on standard input. A small process in its own session that
 * keeps another one running, so that workloads outlive the control plane. About 10 MB of its memory are its own; the rest is the program
 * text of Node that all Node processes of the machine share (measured with 6 of them at once).
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { createServer, type Socket } from 'node:net';
import { identify, readBootId } from '#runtimes/tools/shim/identity.ts';
import {
  HELD_STATUS,
  SOCKET_NAME,
  type ShimAnswer,
  type ShimConfig,
  type ShimRequest,
} from '#runtimes/tools/shim/state.ts';
import { Supervisor } from '#runtimes/tools/shim/supervisor.ts';

/** Milliseconds that a shim stays after its process has run once: the starter must see it up, and may have a request open. */
const LINGER_MS = 1000;

/** File with the secret from which the shim's lock name is derived. */
const HOLDER_FILE = 'holder';

/** Answers requests about the process that the shim keeps running. */
class Shim {
  readonly #supervisor: Supervisor;
  #ending: Promise<void> | null = null;

  constructor(supervisor: Supervisor) {
    this.#supervisor = supervisor;
  }

  /** Ends the process. A second request waits for the first. */
  async stop(graceMs: number): Promise<void> {
    this.#ending ??= this.#supervisor.stop(graceMs);
    await this.#ending;
  }

  serve(socket: Socket): void {
    let text = '';
    socket.on('error', () => socket.destroy());
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      text += part;
      if (!text.includes('\n')) return;
      const request = JSON.parse(text) as ShimRequest;
      void this.#answer(request).then((answer) => {
        socket.end(`${JSON.stringify(answer)}\n`, () => {
          if (request.do === 'stop') process.exit(0);
        });
      });
    });
  }

  async #answer(request: ShimRequest): Promise<ShimAnswer> {
    try {
      if (request.do === 'stop') await this.stop(request.graceMs);
      if (request.do === 'restart' && !this.#ending) await this.#supervisor.restart(request.graceMs);
      if (request.do === 'replace' && !this.#ending) await this.#supervisor.replace(request);
      return this.#supervisor.state;
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
}

function main(directory: string): void {
  const config = JSON.parse(readFileSync(0, 'utf8')) as ShimConfig;
  // The socket's path is relative to this folder: an absolute path may exceed the limit of 108 bytes.
  process.chdir(directory);
  holdDirectory(() => supervise(config));
}

/**
 * Continues if no other shim is in this folder, otherwise ends the process: a killed starter may have left a shim that is not visible yet.
 * The lock is the name of a socket without a file, which the kernel holds until the process is gone. Only Linux has such names, and every
 * account of the machine may take one: so the name must not be guessable.
 */
function holdDirectory(then: () => void): void {
  if (process.platform !== 'linux') return then();
  const holder = createServer((socket) => socket.destroy());
  holder.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    process.exit(HELD_STATUS);
  });
  holder.listen(`\0quarterdeck-shim-${holderName()}`, then);
}

/**
 * Returns the lock name of this folder, which only readers of the folder know. It differs in each boot, because every account can list the
 * names in use.
 */
function holderName(): string {
  const temporary = `${HOLDER_FILE}.${process.pid}.new`;
  if (!existsSync(HOLDER_FILE)) {
    try {
      writeFileSync(temporary, randomBytes(32).toString('hex'), { mode: 0o600 });
      // If two shims start at once, one of them writes the file and both read it.
      linkSync(temporary, HOLDER_FILE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
  }
  const secret = readFileSync(HOLDER_FILE, 'utf8');
  return createHash('sha256').update(`${readBootId()} ${secret}`).digest('hex').slice(0, 32);
}

function supervise(config: ShimConfig): void {
  const supervisor = new Supervisor('.', config, identify(process.pid, readBootId())!);
  const shim = new Shim(supervisor);
  process.on('SIGTERM', () => void shim.stop(10_000).then(() => process.exit(0)));
  process.on('SIGHUP', () => undefined);
  rmSync(SOCKET_NAME, { force: true });
  createServer((socket) => shim.serve(socket)).listen(SOCKET_NAME, () => {
    supervisor.start();
    void supervisor.done.then(() => setTimeout(() => process.exit(0), LINGER_MS));
    writeSync(1, 'up\n');
    flushCompileCache();
  });
}

// A mere import compiles the program for the next start.
if (import.meta.main) main(process.argv[2]!);
