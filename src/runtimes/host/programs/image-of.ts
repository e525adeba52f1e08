import { join } from 'node:path';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { ImageRecord } from '#runtimes/host/images.ts';
import type { InstanceKey } from '#runtimes/host/layout.ts';
import { PlainPaths } from '#runtimes/host/plain-paths.ts';
import type { MachineProgram } from '#runtimes/host/programs/programs.ts';
import type { Bind } from '#runtimes/host/view/plan.ts';
import type { ProgramSpec } from '#runtimes/runtime.ts';

type Parts = Pick<HostParts, 'programs' | 'images' | 'network'>;
type Imaged = Pick<ProgramSpec, 'image' | 'identity'>;

/** Returns the image of an instance: a built image, or a program of the machine, which has no folder. */
export function imageOf(parts: Parts, spec: Imaged): { folder: string | null; record: ImageRecord; binds: Bind[] } {
  const program = programOf(parts, spec);
  if (program) return { folder: null, record: program.record, binds: program.binds };
  return { ...parts.images.get(spec.image), binds: [] };
}

const programOf = ({ programs, network }: Parts, { image, identity }: Imaged): MachineProgram | null =>
  programs.find(image, identity.serviceId, network.isolated);

/** Returns a command as an instance runs it; programs of the machine have commands of their own. */
export function ownCommand(
  parts: Parts & Pick<HostParts, 'layout' | 'machine'>,
  at: InstanceKey,
  spec: Imaged,
  command: string[],
): string[] {
  const program = programOf(parts, spec);
  const own = program?.commands[command[0] ?? ''];
  if (!own) return command;
  const whole = [...own, ...command.slice(1)];
  if (parts.machine.mode === 'namespaces') return whole;
  const paths = new PlainPaths(join(parts.layout.instance(at), 'tree'), program!.record.workdirs);
  return [...own.map((part) => paths.map(part, 'The command')), ...command.slice(1)];
}
