import { isAbsolute, normalize } from 'node:path/posix';
import { noCharts, publishedPorts } from '#runtimes/runtime.ts';
import type { Deployable, Probe, ProgramSpec, TaskSpec, WorkloadSpec } from '#runtimes/runtime.ts';

/** Lowest memory limit of the engine, in MiB. */
const LEAST_MEMORY_MIB = 6;

/** Returns reasons, with remedies, why a spec can't run on a container engine; empty if it can. */
export function refusals(spec: Deployable | TaskSpec): string[] {
  if (spec.type === 'helm') return [noCharts('docker')];
  const own = 'ports' in spec ? [...portRefusals(spec), ...probeRefusals(spec)] : [];
  return [...own, ...resourceRefusals(spec), ...pathRefusals(spec)];
}

function portRefusals(spec: WorkloadSpec): string[] {
  if (spec.instances.min < 2) return [];
  return publishedPorts(spec.ports).map(
    (port) =>
      `Port ${port.name} (${port.protocol}) is published as ${port.externalPort} on the machine, which only one instance can hold: run one instance, or don't make the port public.`,
  );
}

function probeRefusals(spec: WorkloadSpec): string[] {
  const elsewhere = (probe: Probe | null) =>
    probe?.check.type === 'tcp' && !['localhost', '127.0.0.1', null, ''].includes(probe.check.host);
  const names = [elsewhere(spec.readiness) && 'readiness', elsewhere(spec.liveness) && 'liveness'].filter(
    (name) => name !== false,
  );
  return names.map(
    (name) => `The ${name} check names a host: here a check goes to the instance itself, leave \`host\` empty.`,
  );
}

const resourceRefusals = (spec: ProgramSpec): string[] =>
  spec.resources.memoryMib < LEAST_MEMORY_MIB ? [`A container needs ${LEAST_MEMORY_MIB} MiB of memory at least.`] : [];

function pathRefusals(spec: ProgramSpec): string[] {
  const paths = [...spec.files.map((file) => file.path), ...spec.storage.map((volume) => volume.mountPath)];
  return paths
    .filter(
      (path) => !isAbsolute(path) || normalize(path) === '/' || path.split('/').includes('..') || path.includes('\0'),
    )
    .map((path) => `The mount path ${path} is not the absolute path of something below the root folder.`);
}
