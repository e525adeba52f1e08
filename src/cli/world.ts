import { lookAtWorld, removeUnknown } from '#app/inventory.ts';
import { epochOf, type Difference, type WorldEntry } from '#clusters/drift.ts';
import type { World } from '#clusters/inventory.ts';
import { releaseServices } from '#deployments/restored.ts';
import { withBase } from '#cli/base.ts';
import { print, printAside } from '#cli/print.ts';
import type { Settings } from '#platform/settings/index.ts';

export interface WorldOptions {
  json?: true;
  /** All of them, or those with these ids. */
  removeUnknown?: true | string[];
  applyMissing?: true;
}

/** Shows how what runs differs from the database; changes only what it is told to. */
export async function worldCommand(settings: Settings, options: WorldOptions): Promise<void> {
  await withBase(settings, async (base) => {
    const { removeUnknown: chosen } = options;
    if (chosen) {
      const removed = await removeUnknown(base, chosen === true ? undefined : chosen);
      for (const entry of removed) printAside(`Removed ${entry.name} (${entry.serviceId}).`);
    }
    if (options.applyMissing) await releaseServices(base.platform.db);
    const world = await lookAtWorld(base);
    print(options.json ? JSON.stringify(world, null, 2) : describeWorld(world));
  });
}

const MEANING: Record<Difference, string> = {
  unknown: 'there, but not in the database: it stays until `quarterdeck world --remove-unknown` removes it',
  missing: 'should run, but does not: deploy it, or let all of them start with `--apply-missing`',
  running: 'runs, but should be stopped: stop it again, or deploy it',
  newer: 'a later deployment made it than the database knows: the next one replaces it',
  older: 'an earlier deployment made it than the database knows: deploy it again',
  changed: 'somebody has changed in the cluster what its release set: deploy it again',
};

/** The comparison as text. */
export function describeWorld({ differences, alike, unseen }: World): string {
  const kinds = Object.keys(MEANING) as Difference[];
  const groups = kinds.flatMap((kind) => {
    const entries = differences.filter(({ difference }) => difference === kind);
    return entries.length === 0 ? [] : [`${kind}: ${MEANING[kind]}`, ...entries.map(lineOf)];
  });
  const head = differences.length === 0 ? 'What runs is what the database has' : 'What runs differs from the database';
  return [`${head} (${alike} services are as they should be).`, ...groups, ...unseen].join('\n');
}

const lineOf = ({ name, serviceId, runtime, place, found, generation, changes }: WorldEntry): string =>
  `  ${name}  ${serviceId}  ${place ?? 'unknown place'}  ${runtime}, ${
    found ? `${found.state}, generation ${readable(found.identity.generation)}` : 'not there'
  }${generation === null ? '' : `, in the database ${readable(generation)}`}${changes === null ? '' : `, ${changes}`}`;

/** Epoch and number of the deployment. */
const readable = (generation: number): string => `${epochOf(generation)}.${generation % 2 ** 32}`;
