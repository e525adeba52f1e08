import type { HostParts } from '#runtimes/host/host-parts.ts';
import { PlainPaths } from '#runtimes/host/plain-paths.ts';
import { imageOf } from '#runtimes/host/programs/image-of.ts';
import { MachinePrograms } from '#runtimes/host/programs/programs.ts';
import { isWithin } from '#runtimes/host/view/root-path.ts';
import { OURS } from '#runtimes/host/view/plan.ts';
import { missingFrom } from '#runtimes/host/report.ts';
import type { ProgramSpec, TaskSpec } from '#runtimes/runtime.ts';

/** Folders of a view that belong to the view itself. */
const RESERVED = ['/proc', '/sys', '/dev', OURS];

type Parts = Pick<HostParts, 'machine' | 'images' | 'programs' | 'network'>;

/** Returns the reasons why a spec cannot run on this machine, a sentence each. */
export function refusalsOf(spec: ProgramSpec | TaskSpec, parts: Parts): string[] {
  const refusals = taskRefusals(spec, parts.machine);
  if (MachinePrograms.parse(spec.image)) {
    const refusal = parts.programs.refusal(spec.image);
    if (refusal !== null) return [refusal];
  } else if (spec.image !== '' && parts.images.folder(spec.image) === null)
    refusals.push(
      'Images from a registry need a container engine: use a cluster whose runtime is docker (install Docker or Podman) or kubernetes. This one, of the runtime host, builds from a git repository with a Dockerfile.',
    );
  const paths = [...spec.files.map((file) => file.path), ...spec.storage.map((one) => one.mountPath)];
  for (const path of paths) refusals.push(...refusePath(path, spec, parts));
  return refusals;
}

/** Returns the reasons why an execution needs more than this machine offers, or a container engine. */
function taskRefusals(spec: ProgramSpec | TaskSpec, machine: HostParts['machine']): string[] {
  if (!('outputPath' in spec)) return [];
  const refusals: string[] = [];
  const { egress } = missingFrom(machine);
  if (spec.egress && egress !== undefined) refusals.push(egress);
  else if (spec.folders && machine.mode !== 'namespaces')
    refusals.push(
      `This machine has no namespaces (${machine.reason}), which it takes to put folders into a command: use a cluster whose runtime is docker.`,
    );
  if (spec.gpus)
    refusals.push('The runtime host cannot give a command graphics processors: use a cluster whose runtime is docker.');
  return refusals;
}

function refusePath(path: string, spec: ProgramSpec, parts: Parts): string[] {
  const { machine } = parts;
  const names = path.split('/');
  if (
    !path.startsWith('/') ||
    names.includes('..') ||
    RESERVED.some((folder) => isWithin(folder, path)) ||
    path === '/'
  )
    return [
      `"${path}" cannot be a mount path: it must be absolute, without "..", and outside of ${RESERVED.join(', ')}.`,
    ];
  const record = MachinePrograms.parse(spec.image) ? imageOf(parts, spec).record : parts.images.find(spec.image);
  if (machine.mode === 'namespaces' || !record || new PlainPaths('', record.workdirs).holds(path)) return [];
  return [
    `"${path}" cannot be mounted: this machine has no namespaces (${machine.reason}), so that only paths below the Dockerfile's WORKDIR (${record.workdirs.join(', ') || 'it has none'}) can be used.`,
  ];
}
