import type { Engine } from '#services/kinds/terraform/schema.ts';

/** Program of Terraform or OpenTofu on this machine. */
export interface TerraformProgram {
  engine: Engine;
  version: string;
  /** Absolute path. */
  path: string;
}

/** Finds the programs of Terraform and OpenTofu on this machine; app/ provides the function. */
export type ProgramFinder = () => Promise<TerraformProgram[]>;

/** Versions whose images are published. Others can be named as well. */
export const KNOWN_VERSIONS: { engine: Engine; version: string }[] = [
  ...[
    '1.14.0',
    '1.13.5',
    '1.12.2',
    '1.11.4',
    '1.10.5',
    '1.9.8',
    '1.8.5',
    '1.7.5',
    '1.6.6',
    '1.5.7',
    '1.4.7',
    '1.3.10',
  ].map((version) => ({ engine: 'TERRAFORM' as const, version })),
  ...['1.10.7', '1.9.4', '1.8.11', '1.7.10', '1.6.3'].map((version) => ({ engine: 'OPEN_TOFU' as const, version })),
];

/** Compares versions, the newest first; a pre-release comes after its release. */
export function newerFirst(a: string, b: string): number {
  const [first, second] = [a, b].map((version) => version.split('-')) as [string[], string[]];
  const numbers = (text: string) => text.split('.').map(Number);
  const [left, right] = [numbers(first[0]!), numbers(second[0]!)];
  for (let at = 0; at < 3; at++) if ((left[at] ?? 0) !== (right[at] ?? 0)) return (right[at] ?? 0) - (left[at] ?? 0);
  return (first[1] === undefined ? 0 : 1) - (second[1] === undefined ? 0 : 1);
}

/** Tells whether a version is the wanted one, or belongs to a wanted series such as `1.11`. */
const isWanted = (version: string, wanted: string): boolean =>
  version === wanted || (/^\d+\.\d+$/.test(wanted) && version.startsWith(`${wanted}.`) && !version.includes('-'));

const NAMES: Record<Engine, { name: string; program: string; page: string }> = {
  TERRAFORM: { name: 'Terraform', program: 'terraform', page: 'https://developer.hashicorp.com/terraform/install' },
  OPEN_TOFU: { name: 'OpenTofu', program: 'tofu', page: 'https://opentofu.org/docs/intro/install' },
};

export const programName = (engine: Engine): string => NAMES[engine].program;

/**
 * Chooses the programs of this machine for a service, the best first. Throws an error for people that lists the present versions and tells
 * how to get the wanted one.
 */
export function choosePrograms(
  found: TerraformProgram[],
  wanted: { engine: Engine; version: string; moduleChooses: boolean },
): string[] {
  const { engine, version, moduleChooses } = wanted;
  const own = found.filter((one) => one.engine === engine).toSorted((a, b) => newerFirst(a.version, b.version));
  const exact = own.filter((one) => version === '' || isWanted(one.version, version));
  const chosen = moduleChooses ? [...exact, ...own.filter((one) => !exact.includes(one))] : exact.slice(0, 1);
  if (chosen.length > 0) return chosen.map(({ path }) => path);
  const { name, program, page } = NAMES[engine];
  const there = own.length > 0 ? `there is ${own.map((one) => one.version).join(', ')}` : 'there is none';
  const which = version === '' ? name : `${name} ${version}`;
  throw new Error(
    `${which} is not on this machine (${there}). Get it from ${page} and put it on the PATH, or at <folder>/${program}/${version || '<version>'}/${program} with QUARTERDECK_TERRAFORM_PROGRAMS=<folder>${own.length > 0 ? '; or set provider_version.explicit_version to one that is there' : ''}.`,
  );
}
