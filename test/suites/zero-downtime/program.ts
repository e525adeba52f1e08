import { spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stopProxy } from '#runtimes/proxy/builtin/index.ts';
import { freePort } from '#test/harness/free-port.ts';

const ROOT = path.join(import.meta.dirname, '../../..');
const READY_MS = 60_000;
const MOST_SAID = 500_000;

export type Role = 'all' | 'api' | 'worker';

/** Process of the real program. */
export interface Program {
  child: ChildProcess;
  role: Role;
  /** Sends the signal, waits for the end, and returns the exit status; null after a signal that the process cannot handle. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Data directory with the real program: `npm start` with changed ports and runtime only. */
export class Installation {
  readonly dataDir = realpathSync(mkdtempSync(path.join(tmpdir(), 'qd-zero-')));
  readonly #settings: Record<string, string>;
  readonly #programs = new Set<Program>();
  readonly #trees: string[] = [];
  #source = path.join(ROOT, 'src');
  /** End of the programs' output. */
  #said = '';

  private constructor(settings: Record<string, string>) {
    this.#settings = settings;
    // Programs under other accounts must reach their folders.
    chmodSync(this.dataDir, 0o755);
  }

  static async make(settings: Record<string, string>): Promise<Installation> {
    const [api, proxy] = [await freePort(), await freePort()];
    return new Installation({
      QUARTERDECK_PORT: String(api),
      QUARTERDECK_PROXY_PORT: String(proxy),
      QUARTERDECK_OPERATIONS_PORT: '0',
      QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
      ...settings,
    });
  }

  /** Returns the last lines of the log that report errors. */
  get errors(): string {
    const lines = this.#said.split('\n').filter((line) => /"level":(50|60|"error"|"fatal")|Error/.test(line));
    return lines.slice(-5).join('\n');
  }

  get url(): string {
    return `http://127.0.0.1:${this.#settings['QUARTERDECK_PORT']}`;
  }

  get proxyPort(): number {
    return Number(this.#settings['QUARTERDECK_PROXY_PORT']);
  }

  get proxyDirectory(): string {
    return path.join(this.dataDir, 'proxy');
  }

  get token(): string {
    return readFileSync(path.join(this.dataDir, 'admin-token'), 'utf8').trim();
  }

  /** Starts the program and returns it once it is ready. */
  async start(role: Role = 'all'): Promise<Program> {
    const child = spawn(process.execPath, [path.join(this.#source, 'main.ts'), 'start'], {
      env: {
        PATH: process.env.PATH,
        HOME: this.dataDir,
        NODE_COMPILE_CACHE: path.join(this.dataDir, 'compile-cache'),
        ...this.#settings,
        QUARTERDECK_DATA_DIR: this.dataDir,
        QUARTERDECK_ROLE: role,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (this.#said = (this.#said + text).slice(-MOST_SAID)));
    const program: Program = {
      child,
      role,
      end: async (signal) => {
        child.kill(signal);
        this.#programs.delete(program);
        return ended;
      },
    };
    this.#programs.add(program);
    await isReady(child, ended);
    return program;
  }

  /** Installs another release of the program: processes that start from now on have another text of the proxy. */
  upgrade(): void {
    const tree = mkdtempSync(path.join(tmpdir(), 'qd-zero-release-'));
    this.#trees.push(tree);
    for (const part of ['src', 'migrations', 'package.json', 'openapi.json'])
      cpSync(path.join(ROOT, part), path.join(tree, part), { recursive: true });
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(tree, 'node_modules'));
    const main = path.join(tree, 'src/runtimes/proxy/builtin/proxy-main.ts');
    writeFileSync(main, `${readFileSync(main, 'utf8')}\n// Release ${this.#trees.length}.\n`);
    this.#source = path.join(tree, 'src');
  }

  /** Stops all programs and removes the folders. Deployed services must be gone already. */
  async close(): Promise<void> {
    for (const program of this.#programs) await program.end('SIGTERM');
    await stopProxy(this.proxyDirectory);
    for (const folder of [this.dataDir, ...this.#trees]) rmSync(folder, { recursive: true, force: true });
  }
}

async function isReady(child: ChildProcess, ended: Promise<number | null>): Promise<void> {
  let said = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error(`It is not ready in ${READY_MS} ms: ${said}`)), READY_MS);
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      // The log continues as long as the program runs; only its beginning matters.
      said = (said + text).slice(0, 100_000);
      if (/^ +token +in /m.test(said)) resolve();
    });
  void ended.then((status) => reject(new Error(`It ended with status ${status}: ${said.slice(-3000)}`)));
  await promise.finally(() => clearTimeout(timer));
}
