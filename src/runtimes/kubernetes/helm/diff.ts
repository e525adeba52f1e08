import { ParsingError } from '#kernel/parsing/index.ts';
import { RuntimeError, type ChartSpec, type RuntimeContext } from '#runtimes/runtime.ts';
import { find, type Cluster } from '../cluster.ts';
import { namespaceOf } from '../labels.ts';
import { Border } from './border.ts';
import { failureOf } from './failure.ts';
import { differences } from './manifests.ts';
import { KEEP_BYTES, runHelm } from './program.ts';
import { listRevisions, upgradeArguments } from './release.ts';
import { NOTHING_SEEN } from './watch.ts';

/** Lines of a comparison that the log gets. */
const MOST_LINES = 5_000;
const MARGIN_SECONDS = 60;

/** Tells what a submission of the chart would change (`Runtime.diff`). The border lets nothing be changed. */
export async function diffChart(cluster: Cluster, spec: ChartSpec, context: RuntimeContext): Promise<void> {
  const { identity, hostname } = spec;
  const namespace = namespaceOf(identity);
  if (!(await find(cluster, 'Namespace', undefined, namespace)))
    context.log('Nothing of the environment is on the cluster yet.');
  const options = { identity, release: hostname, allowClusterWide: spec.allowClusterWide, readsOnly: true, context };
  const border = await Border.open(cluster, options);
  const run = { border, namespace, folder: spec.folder, signal: context.signal };
  const timeoutSeconds = spec.timeoutSeconds + MARGIN_SECONDS;
  const ask = async (args: string[], values: ChartSpec['values']): Promise<string> => {
    const { exitCode, stdout, stderr } = await runHelm(cluster.helm, args, { ...run, values, timeoutSeconds });
    if (exitCode === 0 && stdout.length > KEEP_BYTES)
      throw new RuntimeError(
        'failed',
        `The manifests cannot be compared: helm tells more than ${KEEP_BYTES / 2 ** 20} MiB of the release. Split the chart.`,
      );
    if (exitCode === 0) return stdout;
    throw failureOf(spec, stderr, { watched: NOTHING_SEEN, refusals: border.refusals });
  };
  try {
    const isThere = (await listRevisions(cluster, identity, hostname)).length > 0;
    const before = isThere ? await ask(['get', 'manifest', hostname, '--namespace', namespace], []) : '';
    const planned = await ask([...upgradeArguments(spec), '--dry-run=server', '--output', 'json'], spec.values);
    const lines = await differences(identity.organizationId, before, manifestIn(planned)).catch(told);
    if (lines.length === 0) context.log('The chart changes nothing.');
    for (const line of lines.slice(0, MOST_LINES)) context.log(line);
    if (lines.length > MOST_LINES) context.log(`${lines.length - MOST_LINES} further lines are left out.`);
  } finally {
    await border.close();
  }
}

function manifestIn(output: string): string {
  // Warnings may stand before it.
  const { manifest } = Object(jsonIn(output.slice(output.indexOf('{')))) as { manifest?: unknown };
  if (typeof manifest === 'string') return manifest;
  throw new RuntimeError('failed', 'The program helm did not tell the manifest of the chart.');
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RuntimeError('failed', 'The program helm did not tell the release of the chart as JSON.', error);
  }
}

/** Throws the error of a manifest that cannot be read as one of the deployment. */
function told(error: unknown): never {
  if (error instanceof ParsingError)
    throw new RuntimeError('failed', `The manifests cannot be compared. ${error.message}`);
  throw error;
}
