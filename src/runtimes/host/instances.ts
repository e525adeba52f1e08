import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentOf } from '#runtimes/host/command-line.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { readInstance, writeInstance, type InstanceRecord } from '#runtimes/host/instance-record.ts';
import { Launcher, plainEnvironment } from '#runtimes/host/launch.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import { endedInstance, lastLinesOf } from '#runtimes/host/logs.ts';
import { PlainPaths } from '#runtimes/host/plain-paths.ts';
import { imageOf } from '#runtimes/host/programs/image-of.ts';
import { APPEARS_MS, hasState, LOOK_MS } from '#runtimes/host/task-record.ts';
import { OURS } from '#runtimes/host/view/plan.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { MOST_KEPT } from '#runtimes/tools/packed-log.ts';
import { identify, isRunning } from '#runtimes/tools/shim/identity.ts';
import {
  becoming,
  readShim,
  startShim,
  stopShim,
  type ProbeTarget,
  type ShimView,
} from '#runtimes/tools/shim/index.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

/** Starts and ends single instances. Each has a folder with a shim, and its own view or tree. */
export class Instances {
  readonly #parts: HostParts;
  readonly #launcher: Launcher;

  constructor(parts: HostParts) {
    this.#parts = parts;
    this.#launcher = new Launcher(parts);
  }

  /** Starts an instance; does nothing if it runs. Throws RuntimeError. */
  async start(at: InstanceKey, spec: WorkloadSpec): Promise<void> {
    const { layout, network } = this.#parts;
    const directory = layout.instance(at);
    if (this.shim(at)?.alive || (await this.#appears(at))) return;
    const name = instanceName(at);
    const former = readInstance(directory);
    const attachment = await network.attach(name, spec, former?.attachment ?? null);
    const { replaced, replacing } = former ?? {};
    writeInstance(directory, {
      format: 1,
      displayName: spec.displayName,
      attachment,
      readyAt: null,
      replaced,
      replacing,
    });
    const place = {
      directory,
      name,
      hostname: `${spec.hostname}-${at.n}`,
      port: attachment.port,
      folders: [],
      given: [],
      isSealed: false,
    };
    const launch = await this.#launcher.prepare(place, spec);
    const liveness = spec.liveness ? { probe: spec.liveness, target: this.probeTarget(at, spec) } : undefined;
    await startShim({ directory, liveness, ...launch });
  }

  /**
   * Returns whether a shim appears whose starting process was killed meanwhile: a second shim would share its tree and compete for its
   * port.
   */
  async #appears(at: InstanceKey): Promise<boolean> {
    const directory = this.#parts.layout.instance(at);
    if (this.record(at) === null) return false;
    for (let waited = 0; waited < APPEARS_MS && !hasState(directory); waited += LOOK_MS) await sleep(LOOK_MS);
    return this.shim(at)?.alive ?? false;
  }

  /** Ends an instance and keeps its folder. */
  async stop(at: InstanceKey, graceMs: number): Promise<void> {
    await stopShim(this.#parts.layout.instance(at), graceMs, this.#parts.bootId);
  }

  /** Ends an instance and starts it again from its image; files outside of its volumes are lost, its log stays. Throws RuntimeError. */
  async replace(at: InstanceKey, spec: WorkloadSpec, reason: string): Promise<void> {
    const { replaced } = this.record(at) ?? {};
    const exit = { code: null, signal: null, reason, at: new Date().toISOString() };
    this.update(at, {
      replaced: { times: (replaced?.times ?? 0) + 1 + (this.shim(at)?.state.restarts ?? 0), exit },
      // The process may be killed before the instance runs again: `finishReplacement` then starts it.
      replacing: identify(process.pid, this.#parts.bootId)!,
    });
    await this.#startAnew(at, spec);
  }

  /** Finishes a replacement that was interrupted or failed; does nothing if there is none, or if another process is at it. */
  async finishReplacement(at: InstanceKey, spec: WorkloadSpec): Promise<void> {
    const { replaced, replacing } = this.record(at) ?? {};
    if (!replaced || !replacing) return;
    const { bootId } = this.#parts;
    if (replacing.pid !== process.pid && isRunning(replacing, bootId)) return;
    const shim = this.shim(at);
    const isStarted = shim?.alive === true && (shim.state.startedAt ?? '') > replaced.exit.at;
    if (isStarted) this.update(at, { replacing: undefined });
    else await this.#startAnew(at, spec);
  }

  async #startAnew(at: InstanceKey, spec: WorkloadSpec): Promise<void> {
    await this.stop(at, spec.gracePeriodSeconds * 1000);
    for (const written of ['upper', 'work', 'tree']) removeTree(join(this.#parts.layout.instance(at), written));
    await this.start(at, spec);
    this.update(at, { replacing: undefined });
  }

  /** Ends an instance and removes its files, except for its log. `tell` receives why the log could not be kept. */
  async retire(at: InstanceKey, graceMs: number, tell: (line: string) => void): Promise<void> {
    await this.stop(at, graceMs);
    const { formerLogs, layout } = this.#parts;
    await formerLogs.keep(endedInstance(layout, at), () => lastLinesOf(layout, at, MOST_KEPT.lines), tell);
    await this.remove(at, graceMs);
  }

  /** Ends an instance and removes all its files. */
  async remove(at: InstanceKey, graceMs: number): Promise<void> {
    await this.stop(at, graceMs);
    await this.#parts.network.detach(instanceName(at));
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

  /** Returns the target of an instance's checks: its address, and how they enter it. */
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
    if (machine.mode === 'namespaces') {
      const wrap = [...this.#enterArguments(record.uid), ...becoming(`${OURS}/bin/node`)];
      const groups = this.#parts.cgroups.files(instanceName(at));
      return { ...target, cwd: '/', wrap, sealed: true, groups };
    }
    const tree = join(this.#parts.layout.instance(at), 'tree');
    const paths = new PlainPaths(tree, record.workdirs);
    const cwd = paths.real(record.config.workdir);
    return { ...target, env: plainEnvironment(env, paths), cwd, wrap: [], ...this.#launcher.account(record) };
  }

  /** Returns the programs that enter an instance's namespaces and drop all privileges, as the instance itself did. */
  #enterArguments(uid: number): string[] {
    const { tools, asRoot } = this.#parts.machine;
    const confined = [tools.setpriv, '--no-new-privs', tools.nsenter];
    const spaces = ['--mount', '--ipc', '--uts'];
    if (asRoot) {
      const account = [`--setgid=${uid}`, `--setuid=${uid}`];
      return [...confined, '--target={pid}', '--pid', '--net', ...spaces, '--root', '--wd', ...account, '--'];
    }
    // The namespaces belong to the user namespace of the process that made them; the workload has one more inside of it.
    const user = ['--user', '--preserve-credentials'];
    const outer = [...confined, '--target={wrapper}', ...user, '--pid=/proc/{init}/ns/pid', ...spaces, '--'];
    return [...outer, tools.nsenter, '--target={inner}', ...user, '--root', '--wd', '--'];
  }
}
