import { cpSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { giveTo } from '#runtimes/host/build/stage-tree.ts';
import { commandLine, environmentOf } from '#runtimes/host/command-line.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { ImageRecord } from '#runtimes/host/images.ts';
import { readInstance, writeInstance, type InstanceRecord } from '#runtimes/host/instance-record.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import { enterCommand, NESTED_UID, viewPlan } from '#runtimes/host/machine.ts';
import { openWay, PlainPaths } from '#runtimes/host/plain-paths.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { OURS, type Bind } from '#runtimes/host/view/plan.ts';
import { imageOf } from '#runtimes/host/programs/image-of.ts';
import { makeVolume } from '#runtimes/host/volumes.ts';
import {
  readShim,
  startShim,
  stopShim,
  type ProbeTarget,
  type ShimView,
  type StartShim,
} from '#runtimes/tools/shim/index.ts';
import { makePrivate } from '#runtimes/tools/shim/state.ts';
import { RuntimeError, type WorkloadSpec } from '#runtimes/runtime.ts';

/** Wrappers around the process of an instance in a view: `unshare` twice. */
const WRAPPERS = 2;

/** Starts and ends single instances: a folder with a shim, and a view or a tree of its own. */
export class Instances {
  readonly #parts: HostParts;

  constructor(parts: HostParts) {
    this.#parts = parts;
  }

  /** Starts an instance; one that runs is left alone. Throws RuntimeError. */
  async start(at: InstanceKey, spec: WorkloadSpec): Promise<void> {
    const { layout, network, machine } = this.#parts;
    const directory = layout.instance(at);
    if (this.shim(at)?.alive) return;
    const { folder, record, binds } = imageOf(this.#parts, spec);
    if (record.mode !== machine.mode)
      throw new RuntimeError(
        'failed',
        `The image was built for a machine in mode ${record.mode}; deploy again to build it anew.`,
      );
    const attachment = await network.attach(at, spec, readInstance(directory)?.attachment ?? null);
    writeInstance(directory, { format: 1, displayName: spec.displayName, attachment, readyAt: null });
    const cgroups = this.#parts.cgroups.make(instanceName(at), spec.resources);
    const hostname = `${spec.hostname}-${at.n}`;
    const env = environmentOf(spec, record.config, {
      hostname,
      port: attachment.port,
      forced: !network.isolated,
    });
    const command = commandLine(spec, record.config);
    const launch =
      machine.mode === 'namespaces'
        ? await this.#inView(at, spec, { folder, record, binds, env, command, hostname, cgroups })
        : await this.#inTree(at, spec, { folder, record, env, command });
    await startShim({
      directory,
      compileCache: machine.compileCache,
      secrets: spec.secrets,
      stopSignal: record.config.stopSignal,
      liveness: spec.liveness ? { probe: spec.liveness, target: this.probeTarget(at, spec) } : undefined,
      ...launch,
    });
  }

  /** Ends an instance; its folder stays. */
  async stop(at: InstanceKey, graceMs: number): Promise<void> {
    await stopShim(this.#parts.layout.instance(at), graceMs, this.#parts.bootId);
  }

  /** Ends an instance and removes everything of it. */
  async remove(at: InstanceKey, graceMs: number): Promise<void> {
    await this.stop(at, graceMs);
    await this.#parts.network.detach(at);
    this.#parts.cgroups.remove(instanceName(at));
    removeTree(this.#parts.layout.instance(at));
  }

  shim(at: InstanceKey): ShimView | null {
    return readShim(this.#parts.layout.instance(at), this.#parts.bootId);
  }

  record(at: InstanceKey): InstanceRecord | null {
    return readInstance(this.#parts.layout.instance(at));
  }

  update(at: InstanceKey, change: Partial<InstanceRecord>): void {
    const record = this.record(at);
    if (record) writeInstance(this.#parts.layout.instance(at), { ...record, ...change });
  }

  /** Where and how the checks of an instance are made. */
  probeTarget(at: InstanceKey, spec: WorkloadSpec): ProbeTarget {
    const { machine } = this.#parts;
    const { attachment } = this.record(at)!;
    const { record } = imageOf(this.#parts, spec);
    const env = environmentOf(spec, record.config, {
      hostname: `${spec.hostname}-${at.n}`,
      port: attachment.port,
      forced: !this.#parts.network.isolated,
    });
    const target = { address: attachment.address, ports: attachment.ports, env };
    if (machine.mode === 'namespaces') return { ...target, cwd: '/', wrap: this.#enterArguments(record.uid) };
    const tree = join(this.#parts.layout.instance(at), 'tree');
    const cwd = new PlainPaths(tree, record.workdirs).real(record.config.workdir);
    return { ...target, env: plainEnvironment(env, tree), cwd, wrap: [], ...this.#account(record) };
  }

  /** Programs that enter an instance's namespaces and give up everything, as the instance itself did. */
  #enterArguments(uid: number): string[] {
    const { tools, asRoot } = this.#parts.machine;
    const spaces = ['--mount', '--ipc', '--uts'];
    if (asRoot) {
      const account = [`--setgid=${uid}`, `--setuid=${uid}`];
      return [tools.nsenter, '--target={pid}', '--pid', '--net', ...spaces, '--root', '--wd', ...account, '--'];
    }
    // The namespaces belong to the user namespace of the process that made them; the workload has one more inside of it.
    const user = ['--user', '--preserve-credentials'];
    const outer = [tools.nsenter, '--target={wrapper}', ...user, '--pid=/proc/{init}/ns/pid', ...spaces, '--'];
    return [...outer, tools.nsenter, '--target={inner}', ...user, '--root', '--wd', '--'];
  }

  #account(record: ImageRecord): { uid?: number; gid?: number } {
    return this.#parts.machine.asRoot ? { uid: record.uid, gid: record.uid } : {};
  }

  async #inView(
    at: InstanceKey,
    spec: WorkloadSpec,
    image: {
      folder: string | null;
      record: ImageRecord;
      binds: Bind[];
      env: Record<string, string>;
      command: string[];
      hostname: string;
      cgroups: string[];
    },
  ): Promise<Omit<StartShim, 'directory'>> {
    const { machine, layout, network } = this.#parts;
    const { record } = image;
    const directory = layout.instance(at);
    const uid = machine.asRoot ? record.uid : NESTED_UID;
    const plan = viewPlan(machine, directory, {
      action: {
        kind: 'run',
        argv: image.command,
        env: image.env,
        cwd: record.config.workdir,
        account: { kind: 'instance', uid },
      },
      layers: image.folder === null ? [] : record.layers.map((layer) => join(image.folder!, layer)),
      binds: [...this.#files(directory, spec), ...this.#storage(spec, record), ...image.binds, ...network.binds(spec)],
      hostname: image.hostname,
      resolv: network.isolated ? (machine.outsideResolv ?? machine.resolv) : machine.resolv,
      cgroups: image.cgroups,
    });
    const [program, args] = enterCommand(machine, plan, directory);
    const [command, ...rest] = [...network.prefix(at), program, ...args];
    return {
      command: command!,
      args: rest,
      env: { NODE_COMPILE_CACHE: machine.compileCache },
      cwd: '/',
      signalDepth: WRAPPERS,
    };
  }

  /** File variables, written beside the instance and shown read-only at their paths. */
  #files(directory: string, spec: WorkloadSpec): Bind[] {
    const folder = join(directory, 'files');
    rmSync(folder, { recursive: true, force: true });
    makePrivate(folder);
    return spec.files.map(({ path, content }, index) => {
      const from = join(folder, String(index));
      writeFileSync(from, content, { mode: 0o444 });
      return { from, to: path, readOnly: true };
    });
  }

  #storage(spec: WorkloadSpec, record: ImageRecord): Bind[] {
    const uid = this.#parts.machine.asRoot ? record.uid : null;
    return spec.storage.map(({ id, mountPath }) => ({
      from: makeVolume(this.#parts.layout, id, spec.identity.serviceId, uid),
      to: mountPath,
      readOnly: false,
    }));
  }

  async #inTree(
    at: InstanceKey,
    spec: WorkloadSpec,
    image: { folder: string | null; record: ImageRecord; env: Record<string, string>; command: string[] },
  ): Promise<Omit<StartShim, 'directory'>> {
    const { record } = image;
    const tree = join(this.#parts.layout.instance(at), 'tree');
    removeTree(tree);
    if (image.folder === null) mkdirSync(tree, { recursive: true });
    else
      cpSync(join(image.folder, 'tree'), tree, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    const paths = new PlainPaths(tree, record.workdirs);
    for (const { path, content } of spec.files) {
      paths.require(path, 'A file variable');
      mkdirSync(dirname(paths.real(path)), { recursive: true });
      rmSync(paths.real(path), { force: true });
      writeFileSync(paths.real(path), content, { mode: 0o444 });
    }
    const account = this.#account(record);
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
    const [command, ...args] = image.command.map((argument) => paths.map(argument, 'The command'));
    return { command: command!, args, env: plainEnvironment(image.env, tree), cwd, signalDepth: 0, ...account };
  }
}

/** What names folders of a view, in a tree: the home, and where Node is. */
function plainEnvironment(env: Record<string, string>, tree: string): Record<string, string> {
  const node = dirname(realpathSync(process.execPath));
  return { ...env, HOME: join(tree, 'root'), PATH: (env['PATH'] ?? '').replace(`${OURS}/bin`, node) };
}
