import type { RuntimeReport } from '#runtimes/runtime.ts';
import { asRuntimeError } from './errors.ts';
import { askAbout } from './node.ts';
import type { DockerNode, EngineAbout } from './node.ts';

/** Returns whether the engine is usable now (`Runtime.check`). */
export async function report(node: DockerNode): Promise<RuntimeReport> {
  try {
    const about = await askAbout(node.engine);
    return { ok: true, description: `${about.product} ${about.version}`, limits: limitsOf(about) };
  } catch (error) {
    return { ok: false, description: 'container engine', limits: [asRuntimeError(error).message] };
  }
}

/** Limitations of this engine, with remedies. */
function limitsOf(about: EngineAbout): string[] {
  const limits = ['The size of storage is not enforced: the engine’s volumes share its disk.'];
  if (!about.buildkit && about.product === 'Docker Engine')
    limits.push(
      'Builds use the classic builder, which refuses `RUN --mount`: Docker Engine 18.09 or later has BuildKit.',
    );
  if (about.product === 'Podman')
    limits.push('With Podman the exit status of an instance that was started again is not known.');
  if (!about.limitsMemory)
    limits.push('Memory limits are not enforced: the kernel’s memory cgroup is not open to the engine.');
  if (!about.limitsCpu) limits.push('CPU limits are not enforced: the kernel’s CPU quota is not open to the engine.');
  if (about.rootless)
    limits.push('The engine runs without root: ports below 1024 cannot be published unless the system allows it.');
  return limits;
}
