import { randomInt } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '#kernel/lease-signal.ts';
import { canEnter, execAt } from '#runtimes/host/exec.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { Instances } from '#runtimes/host/instances.ts';
import { Layout, type InstanceKey } from '#runtimes/host/layout.ts';
import { LOOK_MS } from '#runtimes/host/task-record.ts';
import { OURS } from '#runtimes/host/view/plan.ts';
import { isOwnerGone, OWNED_SECONDS, ownMark } from '#runtimes/tools/owner.ts';
import { makePrivate, readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';
import {
  RuntimeError,
  throwIfCancelled,
  type AsideRequest,
  type ExecEnd,
  type WorkloadSpec,
} from '#runtimes/runtime.ts';

/** How long the program of an additional instance may take to begin. */
const BEGINS_MS = 20_000;
/** Grace for its end: nothing that it does is kept. */
const GRACE_MS = 1_000;
/** Numbers of additional instances: far from those of a release's own, whose names are made likewise. */
const NUMBERS = [1_000_000_000, 2_000_000_000] as const;
/** Stands in place of the release's program where only another one is to run. */
const IDLE = 'setInterval(() => undefined, 2 ** 30)';

/** Additional instances lie beside those of the releases, where nothing that looks for these finds them. */
class AsideLayout extends Layout {
  override instance({ serviceId, generation, n }: InstanceKey): string {
    return join(this.asides(serviceId), `${generation}-${n}`);
  }
}

/** Runs programs in additional, temporary instances (`Runtime.execAside`). */
export class Asides {
  readonly #parts: HostParts;
  readonly #instances: Instances;

  constructor(parts: HostParts) {
    this.#parts = { ...parts, layout: new AsideLayout(parts.layout.dataDir) };
    this.#instances = new Instances(this.#parts);
  }

  async run(serviceId: string, generation: number, request: AsideRequest, caller: AbortSignal): Promise<ExecEnd> {
    const signal = anySignal([caller, AbortSignal.timeout(OWNED_SECONDS * 1000)]);
    throwIfCancelled(signal);
    const release = this.#parts.releases.read(serviceId, generation);
    if (!release) throw new RuntimeError('failed', 'No release of the service is there to be copied: deploy it.');
    const at = { serviceId, generation, n: randomInt(...NUMBERS) };
    const spec = asideSpec(release, request, this.#idle());
    try {
      markOwn(this.#parts.layout.instance(at));
      await this.#instances.start(at, spec);
      await this.#begun(at, spec, request, signal);
      return await execAt(this.#parts, this.#instances, { at, spec }, request, signal);
    } finally {
      await this.#instances.remove(at, GRACE_MS);
    }
  }

  /** Ends and removes those of a service. */
  async removeAll(serviceId: string): Promise<void> {
    const present = this.#present(serviceId);
    await Promise.all(present.map((at) => this.#instances.remove(at, GRACE_MS)));
  }

  /** Ends and removes those whose process is gone. */
  async removeAbandoned(): Promise<void> {
    const present = this.#parts.layout.services().flatMap((serviceId) => this.#present(serviceId));
    for (const at of present)
      if (isAbandoned(this.#parts.layout.instance(at))) await this.#instances.remove(at, GRACE_MS);
  }

  #present(serviceId: string): InstanceKey[] {
    return this.#parts.layout.asideNames(serviceId).flatMap((name) => {
      const [generation, n] = name.split('-').map(Number);
      return Number.isInteger(generation) && Number.isInteger(n) ? [{ serviceId, generation: generation!, n: n! }] : [];
    });
  }

  /** Node's own program, by the path that it has for a workload. */
  #idle(): string[] {
    const node = this.#parts.machine.mode === 'namespaces' ? `${OURS}/bin/node` : process.execPath;
    return [node, '-e', IDLE];
  }

  async #begun(at: InstanceKey, spec: WorkloadSpec, request: AsideRequest, signal: AbortSignal): Promise<void> {
    for (let waited = 0; !canEnter(this.#parts, this.#instances, { at, spec }); waited += LOOK_MS) {
      throwIfCancelled(signal);
      if (waited >= BEGINS_MS)
        throw new RuntimeError(
          'failed',
          request.runsRelease
            ? 'The program of the release does not stay up beside the other instances: open it without that program.'
            : 'The additional instance did not begin.',
        );
      await sleep(LOOK_MS);
    }
  }
}

/** A release without what others reach or write: no routes, published ports, checks or storage. */
function asideSpec(release: WorkloadSpec, request: AsideRequest, idle: string[]): WorkloadSpec {
  const { resources } = request;
  return {
    ...release,
    ...(request.runsRelease ? {} : { entrypoint: idle.slice(0, 1), arguments: idle.slice(1) }),
    resources: { ...release.resources, ...resources },
    ports: release.ports.map((port) => ({ ...port, publiclyAccessible: false })),
    routes: [],
    storage: [],
    readiness: null,
    liveness: null,
  };
}

const ownerFile = (directory: string) => join(directory, 'owner.json');

/** Written before anything else of it. */
function markOwn(directory: string): void {
  makePrivate(directory);
  writeAtomically(ownerFile(directory), JSON.stringify({ mark: ownMark() }));
}

function isAbandoned(directory: string): boolean {
  const owner = readJson<{ mark: string }>(ownerFile(directory));
  // A moment after it was made it has none yet.
  if (!owner) return existsSync(directory) && Date.now() - statSync(directory).mtimeMs > BEGINS_MS;
  return isOwnerGone(owner.mark, statSync(ownerFile(directory)).mtime);
}
