import { inspectProxy, inspectRuntimes, inspectTerraform, inspectTools } from '#app/inspect.ts';
import { inspectQueue } from '#deployments/queue/inspect.ts';
import { inspectDisk } from '#housekeeping/index.ts';
import type { Finding } from '#kernel/finding.ts';
import { inspectDatabase } from '#platform/database/inspect.ts';
import { inspectVault } from '#platform/vault/inspect.ts';
import { LEAST_NODE } from '#platform/release.ts';
import { print } from '#cli/print.ts';
import type { Settings } from '#platform/settings/index.ts';

const MARKS = { ok: '✓', missing: '-', broken: '✗' };

/** Prints what was found of all that the service stands on and what would mend the rest. Fails only when it can't run. */
export async function doctorCommand(settings: Settings, searchPath: string | undefined): Promise<void> {
  const [database, vault, queue, disk, runtimes, proxy, tools, terraform] = await Promise.all([
    inspectDatabase(settings),
    inspectVault(settings),
    inspectQueue(settings),
    inspectDisk(settings),
    inspectRuntimes(settings),
    inspectProxy(settings),
    inspectTools(searchPath),
    inspectTerraform(settings),
  ]);
  const needed = [inspectNode(), database, vault, queue, disk];
  const findings = [...needed, ...runtimes.findings, ...proxy, ...tools, ...terraform];
  print(findings.map(show).join('\n'));
  print(`\nData directory: ${settings.dataDir}\nA first cluster gets the runtime ${runtimes.chosen}.`);
  const broken = findings.filter((finding) => finding.state === 'broken');
  if (!runtimes.findings.some((finding) => finding.state === 'ok')) broken.push(...runtimes.findings);
  if (broken.length > 0)
    throw new Error(
      `the service cannot run: ${broken.map((finding) => `${finding.name} (${finding.found})`).join(', ')}`,
    );
}

function inspectNode(): Finding {
  const enough = Number(process.versions.node.split('.')[0]) >= LEAST_NODE;
  return {
    name: 'Node.js',
    state: enough ? 'ok' : 'broken',
    found: `${process.version} (${process.execPath})`,
    advice: enough ? [] : [`Install Node.js ${LEAST_NODE} or later.`],
  };
}

const show = ({ name, state, found, advice }: Finding): string =>
  [`${MARKS[state]} ${name.padEnd(16)} ${found}`, ...advice.map((line) => `${' '.repeat(19)}${line}`)].join('\n');
