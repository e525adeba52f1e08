import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { enterCommand, serviceAccount, viewPlan, type Machine } from '#runtimes/host/machine.ts';
import { openWay, PlainPaths } from '#runtimes/host/plain-paths.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { copyInto, type CopyJob } from '#runtimes/host/view/copy.ts';
import { COPY_FAILED, type ViewAction, type ViewPlan } from '#runtimes/host/view/plan.ts';
import { makeInRoot } from '#runtimes/host/view/root-path.ts';
import { runCommand, type CommandOptions, type CommandResult } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Settings that all stages of a build share. */
export interface BuildPlace {
  machine: Machine;
  dataDir: string;
  /** Folder of the image that is being made. */
  folder: string;
  serviceId: string;
  cgroups: string[];
  signal: AbortSignal;
  log(line: string): void;
}

/** The files of one stage while it is built. */
export interface StageTree {
  /** Folders relative to the image's, the newest first. */
  readonly layers: string[];
  /** Runs a program in the tree. Throws RuntimeError `build_failed` when it fails. */
  run(argv: string[], env: Record<string, string>, workdir: string): Promise<void>;
  /** Executes COPY; `from` is the stage that `--from` names. */
  copy(job: CopyJob, from: StageTree | null): Promise<void>;
  /** Notes a WORKDIR. */
  enter(workdir: string): void;
}

/** Stage in views of the machine: its changes are one layer over the layers of its base stage. */
export class ViewStage implements StageTree {
  readonly layers: string[];
  readonly #place: BuildPlace;
  readonly #scratch: string;

  constructor(place: BuildPlace, index: number, base: StageTree | null) {
    this.#place = place;
    const layer = join('layers', String(index));
    this.layers = [layer, ...(base?.layers ?? [])];
    this.#scratch = join(place.folder, `scratch-${index}`);
    mkdirSync(join(place.folder, layer), { recursive: true });
    if (!base) maskPasswords(join(place.folder, layer), place.machine);
  }

  async run(argv: string[], env: Record<string, string>, workdir: string): Promise<void> {
    await this.#inView({ kind: 'run', argv, env, cwd: workdir, account: { kind: 'builder' } }, null);
  }

  async copy(job: CopyJob, from: StageTree | null): Promise<void> {
    await this.#inView({ kind: 'copy', job }, from);
  }

  enter(): void {
    // The next RUN or COPY makes the folder.
  }

  async #inView(action: ViewAction, from: StageTree | null): Promise<void> {
    const { machine, folder, cgroups } = this.#place;
    const absolute = (layers: string[]) => layers.map((layer) => join(folder, layer));
    const [layer, ...below] = absolute(this.layers);
    const plan: ViewPlan = viewPlan(machine, this.#scratch, {
      action,
      layers: below,
      upper: layer!,
      cgroups,
      from: from && {
        layers: absolute(from.layers),
        upper: join(this.#scratch, 'from-upper'),
        work: join(this.#scratch, 'from-work'),
      },
    });
    const [program, args] = enterCommand(machine, plan, this.#scratch);
    try {
      const env = { NODE_COMPILE_CACHE: machine.compileCache };
      const result = await runStep(this.#place, program, args, { env });
      if (action.kind === 'copy' && result.exitCode === COPY_FAILED)
        throw new RuntimeError('build_failed', result.stderr.trim());
      requireSuccess(result);
    } finally {
      removeTree(this.#scratch);
    }
  }
}

/** Hides the machine's password hashes from a build, which runs as the view's root and could read them. */
function maskPasswords(layer: string, machine: Machine): void {
  if (!machine.asRoot) return;
  const etc = join(layer, 'top', 'etc');
  mkdirSync(etc, { recursive: true });
  for (const name of ['shadow', 'gshadow', 'shadow-', 'gshadow-'])
    if (existsSync(`/etc/${name}`))
      writeFileSync(join(etc, name), name.startsWith('g') ? 'root:*::\n' : 'root:*:19000:0:99999:7:::\n', {
        mode: 0o600,
      });
}

/** Stage in its own folder, for machines without namespaces: programs run as ordinary processes. */
export class PlainStage implements StageTree {
  readonly layers: string[] = [];
  readonly tree: string;
  readonly paths: PlainPaths;
  readonly #place: BuildPlace;
  #changed = true;

  constructor(place: BuildPlace, index: number, base: StageTree | null) {
    this.#place = place;
    this.tree = join(place.folder, 'trees', String(index));
    mkdirSync(this.tree, { recursive: true, mode: 0o755 });
    const parent = base as PlainStage | null;
    if (parent) cpSync(parent.tree, this.tree, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    this.paths = new PlainPaths(this.tree, parent ? parent.paths.workdirs : []);
  }

  async run(argv: string[], env: Record<string, string>, workdir: string): Promise<void> {
    const uid = this.#place.machine.asRoot ? serviceAccount(this.#place.serviceId) : undefined;
    const mapped = argv.map((argument) => this.paths.map(argument, 'RUN'));
    const cwd = makeInRoot(this.tree, workdir);
    const home = makeInRoot(this.tree, 'root');
    if (uid !== undefined && this.#changed) {
      await giveTo(uid, this.tree);
      await openWay(this.#place.dataDir, this.tree, uid);
    }
    this.#changed = false;
    const account = uid === undefined ? {} : { uid, gid: uid };
    requireSuccess(
      await runStep(this.#place, mapped[0]!, mapped.slice(1), {
        env: { ...env, HOME: home, PATH: this.paths.map(env['PATH'] ?? '', 'PATH') },
        cwd,
        ...account,
      }),
    );
  }

  async copy(job: CopyJob, from: StageTree | null): Promise<void> {
    this.paths.require(job.destination, 'COPY');
    this.#changed = true;
    try {
      copyInto(this.tree, { ...job, base: job.base ?? (from as PlainStage).tree });
    } catch (error) {
      throw new RuntimeError('build_failed', (error as Error).message, error);
    }
  }

  enter(workdir: string): void {
    this.paths.workdirs.push(workdir);
    makeInRoot(this.tree, workdir);
    this.#changed = true;
  }
}

/** Makes an account the owner of everything in a folder. */
export async function giveTo(uid: number, folder: string): Promise<void> {
  const result = await runCommand('chown', ['-R', '-h', `${uid}:${uid}`, '--', folder]);
  if (result.exitCode !== 0)
    throw new RuntimeError('failed', `chown of ${folder}: ${result.stderr.trim().slice(-300)}`);
}

function runStep(place: BuildPlace, program: string, args: string[], options: CommandOptions): Promise<CommandResult> {
  return runCommand(program, args, { ...options, signal: place.signal, onLine: (line) => place.log(line) });
}

/** Number of last output lines that an error shows. */
const LAST_LINES = 3;

function requireSuccess({ exitCode, stdout, stderr }: CommandResult): void {
  if (exitCode === 0) return;
  // Some programs write their colours, and nothing else, to standard error.
  const said = [stderr, stdout].map((text) => stripVTControlCharacters(text).trim());
  const reason = reasonOf((said[0] || said[1]!).split('\n'));
  throw new RuntimeError('build_failed', `It ended with status ${exitCode}${reason ? `: ${reason}` : '.'}`);
}

/** Lines of npm that name the error by a code only. */
const CODES = /^npm (?:error|ERR!) (?:code|errno|syscall|path|A complete log)\b/;
const ERROR = /^npm (?:error|ERR!) \S|^\W*(?:fatal )?error\b\W/i;

/** Returns the first line that reports an error, since advice may follow it, and the last lines. */
function reasonOf(lines: string[]): string {
  const first = lines.findIndex((line) => ERROR.test(line) && !CODES.test(line));
  const last = Math.max(0, lines.length - LAST_LINES);
  return [...(first >= 0 && first < last ? [lines[first]!] : []), ...lines.slice(last)].join('\n');
}
