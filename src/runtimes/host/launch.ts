import { cpSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makePrivate } from '#kernel/private-files.ts';
import { giveTo } from '#runtimes/host/build/stage-tree.ts';
import { commandLine, environmentOf } from '#runtimes/host/command-line.ts';
import { PROXY_PORT, sandboxVariables } from '#runtimes/host/egress/sandbox-proxy.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { ImageRecord } from '#runtimes/host/images.ts';
import { enterCommand, NESTED_UID, viewPlan } from '#runtimes/host/machine.ts';
import { openWay, PlainPaths } from '#runtimes/host/plain-paths.ts';
import { imageOf } from '#runtimes/host/programs/image-of.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import type { CopyJob } from '#runtimes/host/view/copy.ts';
import { OURS, type Bind, type ViewPlan } from '#runtimes/host/view/plan.ts';
import { makeVolume } from '#runtimes/host/volumes.ts';
import { runChecked } from '#runtimes/tools/command.ts';
import type { StartShim } from '#runtimes/tools/shim/index.ts';
import { RuntimeError, type ProgramSpec } from '#runtimes/runtime.ts';

/** Time limit for the copy of a local folder, in seconds. */
const COPY_SECONDS = 600;

/** Wrappers around the process of an instance in a view: `unshare` twice. */
const WRAPPERS = 2;

/** Location of a program, an instance or an execution: its folder, its names and its port. */
export interface Place {
  /** Folder of the program, with its view or tree and its shim. */
  directory: string;
  /** Name that is unique on the machine, for the program's control group and network. */
  name: string;
  hostname: string;
  /** Value of PORT; null if unset. */
  port: number | null;
  /** Folders that are created if absent, writable for the program's account. */
  folders: string[];
  /** Local folders whose files are copied into the view before the program starts. */
  given: { path: string; directory: string }[];
  /** True if the program has its own network, with a proxy as its only route out. */
  isSealed: boolean;
}

type Image = ReturnType<typeof imageOf>;

/** Prepares the view or tree of a program and the start of its shim. */
export class Launcher {
  readonly #parts: HostParts;

  constructor(parts: HostParts) {
    this.#parts = parts;
  }

  /**
   * Returns the settings for the shim; first makes the program's limits and its view or tree. The signal aborts it. Throws RuntimeError.
   */
  async prepare(place: Place, spec: ProgramSpec, signal?: AbortSignal): Promise<Omit<StartShim, 'directory'>> {
    const { machine, network, cgroups } = this.#parts;
    const image = imageOf(this.#parts, spec);
    const { record } = image;
    if (record.mode !== machine.mode)
      throw new RuntimeError(
        'failed',
        `The image was built for a machine in mode ${record.mode}; deploy again to build it anew.`,
      );
    const groups = cgroups.make(place.name, spec.resources);
    const own = environmentOf(spec, record.config, { ...place, forced: !network.isolated });
    const env = place.isSealed ? { ...own, ...sandboxVariables } : own;
    const argv = commandLine(spec, record.config);
    for (const one of place.given) await this.#give(place, spec, image, one, signal);
    const launch =
      machine.mode === 'namespaces'
        ? this.#inView(place, this.#plan(place, spec, image, { argv, env, cgroups: groups }))
        : await this.#inTree(place, spec, image, { argv, env });
    return {
      compileCache: machine.compileCache,
      secrets: spec.secrets,
      stopSignal: record.config.stopSignal,
      ...launch,
    };
  }

  /**
   * Returns program and arguments that run another command in the view of a program that has ended. It has that program's account and
   * network; paths and links resolve as they did for that program, and nothing outside is reachable.
   */
  inspection(place: Place, spec: ProgramSpec, argv: string[]): [string, string[]] {
    const whole = this.#plan(place, spec, imageOf(this.#parts, spec), { argv, env: {}, cgroups: [] });
    // Its proxy is gone.
    const plan: ViewPlan = place.isSealed ? { ...whole, network: 'none' } : whole;
    const { command, args } = this.#inView(place, plan);
    return [command, [...args]];
  }

  /** Returns the account that a program runs as without a view; this process's own account unless it is root. */
  account(record: ImageRecord): { uid?: number; gid?: number } {
    return this.#parts.machine.asRoot ? { uid: record.uid, gid: record.uid } : {};
  }

  #plan(
    place: Place,
    spec: ProgramSpec,
    { folder, record, binds }: Image,
    run: { argv: string[]; env: Record<string, string>; cgroups: string[] },
  ): ViewPlan {
    const { machine, network } = this.#parts;
    const uid = machine.asRoot ? record.uid : NESTED_UID;
    const { argv, env, cgroups } = run;
    return viewPlan(machine, place.directory, {
      action: { kind: 'run', argv, env, cwd: record.config.workdir, account: { kind: 'instance', uid } },
      layers: folder === null ? [] : record.layers.map((layer) => join(folder, layer)),
      binds: [
        ...this.#files(place.directory, spec),
        ...this.#storage(spec, record),
        ...binds,
        ...(place.isSealed ? [] : network.binds(spec.identity.environmentId)),
      ],
      folders: place.folders,
      hostname: place.hostname,
      resolv: network.isolated ? (machine.outsideResolv ?? machine.resolv) : machine.resolv,
      cgroups,
      network: place.isSealed ? { proxyPort: PROXY_PORT } : 'outer',
    });
  }

  /** Copies a folder into the view at the path that the program sees: storage and links resolve as they do there. */
  async #give(
    place: Place,
    spec: ProgramSpec,
    image: Image,
    { path, directory }: Place['given'][number],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { asRoot } = this.#parts.machine;
    const { action: _action, ...plan } = this.#plan(place, spec, image, { argv: [], env: {}, cgroups: [] });
    const job: CopyJob = {
      base: directory,
      allowed: null,
      sources: ['.'],
      ignore: [],
      destination: path,
      mode: null,
      inline: {},
      ...(asRoot ? { owner: image.record.uid } : {}),
    };
    const copying: ViewPlan = { ...plan, network: 'none', action: { kind: 'copy', job } };
    await runChecked(...enterCommand(this.#parts.machine, copying, place.directory), {
      timeoutSeconds: COPY_SECONDS,
      signal,
      env: { NODE_COMPILE_CACHE: this.#parts.machine.compileCache },
    });
  }

  #inView(place: Place, plan: ViewPlan): Omit<StartShim, 'directory'> {
    const { machine, network } = this.#parts;
    const [program, args] = enterCommand(machine, plan, place.directory);
    const prefix = place.isSealed ? [] : network.prefix(place.name);
    const [command, ...rest] = [...prefix, program, ...args];
    return {
      command: command!,
      args: rest,
      env: { NODE_COMPILE_CACHE: machine.compileCache },
      cwd: '/',
      signalDepth: WRAPPERS,
    };
  }

  /** Writes the file variables beside the instance; they are shown read-only at their paths. */
  #files(directory: string, spec: ProgramSpec): Bind[] {
    const folder = join(directory, 'files');
    rmSync(folder, { recursive: true, force: true });
    makePrivate(folder);
    return spec.files.map(({ path, content }, index) => {
      const from = join(folder, String(index));
      writeFileSync(from, content, { mode: 0o444 });
      return { from, to: path, readOnly: true };
    });
  }

  #storage(spec: ProgramSpec, record: ImageRecord): Bind[] {
    const uid = this.#parts.machine.asRoot ? record.uid : null;
    return spec.storage.map(({ id, mountPath }) => ({
      from: makeVolume(this.#parts.layout, id, spec.identity.serviceId, uid),
      to: mountPath,
      readOnly: false,
    }));
  }

  async #inTree(
    place: Place,
    spec: ProgramSpec,
    { folder, record }: Image,
    run: { argv: string[]; env: Record<string, string> },
  ): Promise<Omit<StartShim, 'directory'>> {
    const tree = join(place.directory, 'tree');
    removeTree(tree);
    if (folder === null) mkdirSync(tree, { recursive: true });
    else cpSync(join(folder, 'tree'), tree, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    // Paths that stand for a folder of the tree wherever the command names them.
    const paths = new PlainPaths(tree, [...record.workdirs, ...place.folders]);
    for (const path of place.folders) mkdirSync(paths.real(path), { recursive: true });
    for (const { path, content } of spec.files) {
      paths.require(path, 'A file variable');
      mkdirSync(dirname(paths.real(path)), { recursive: true });
      rmSync(paths.real(path), { force: true });
      writeFileSync(paths.real(path), content, { mode: 0o444 });
    }
    const account = this.account(record);
    for (const { id, mountPath } of spec.storage) {
      paths.require(mountPath, 'Storage');
      removeTree(paths.real(mountPath));
      mkdirSync(dirname(paths.real(mountPath)), { recursive: true });
      symlinkSync(
        makeVolume(this.#parts.layout, id, spec.identity.serviceId, account.uid ?? null),
        paths.real(mountPath),
      );
    }
    const cwd = paths.real(record.config.workdir);
    mkdirSync(join(tree, 'root'), { recursive: true });
    if (account.uid !== undefined) {
      await giveTo(account.uid, tree);
      await openWay(this.#parts.layout.dataDir, tree, account.uid);
    }
    const [command, ...args] = run.argv.map((argument) => paths.map(argument, 'The command'));
    return { command: command!, args, env: plainEnvironment(run.env, paths), cwd, signalDepth: 0, ...account };
  }
}

/** Returns the environment with HOME and PATH changed from folders of a view to those of a tree. */
export function plainEnvironment(env: Record<string, string>, paths: PlainPaths): Record<string, string> {
  const node = dirname(realpathSync(process.execPath));
  const path = paths.map((env['PATH'] ?? '').replace(`${OURS}/bin`, node), 'PATH');
  return { ...env, HOME: join(paths.tree, 'root'), PATH: path };
}
