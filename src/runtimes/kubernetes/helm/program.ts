import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runCommand, type CommandResult } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { Border } from './border.ts';

/** Oldest release of helm 3 that is known to work. */
const OLDEST = 14;
const VERSION_SECONDS = 20;
/** Characters that are kept of the output of helm, which may lose its beginning beyond that. */
export const KEEP_BYTES = 4 * 2 ** 20;

/** Returns why charts cannot be applied by this machine, with the remedy; null if they can. */
export async function helmProblem(program: string | null | undefined): Promise<string | null> {
  const remedy = `Install helm 3.${OLDEST} or later of the third major version (https://helm.sh/docs/intro/install) on the machines of the control plane, or set QUARTERDECK_HELM, then deploy the cluster again.`;
  if (!program) return `The program helm is not on this machine. ${remedy}`;
  const home = await mkdtemp(path.join(tmpdir(), 'qd-helm-'));
  try {
    const args = ['version', '--template', '{{.Version}}'];
    const { stdout } = await runCommand(program, args, { env: environmentIn(home), timeoutSeconds: VERSION_SECONDS });
    const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(stdout.trim()) ?? [];
    if (major === '3' && Number(minor) >= OLDEST) return null;
    return `The program ${program} is helm ${stdout.trim().slice(0, 40) || 'of an unknown version'}. ${remedy}`;
  } catch (error) {
    return `The program ${program} does not run: ${(error as Error).message} ${remedy}`;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Whole environment of helm: no plugins, no registries, no files of the account that it runs under. */
const environmentIn = (home: string): Record<string, string> => ({
  HOME: home,
  HELM_CACHE_HOME: path.join(home, 'cache'),
  HELM_CONFIG_HOME: path.join(home, 'config'),
  HELM_DATA_HOME: path.join(home, 'data'),
  HELM_PLUGINS: path.join(home, 'plugins'),
  HELM_DRIVER: 'secret',
  KUBECONFIG: path.join(home, 'kubeconfig'),
  // It talks to the border only.
  NO_PROXY: '127.0.0.1',
});

export interface HelmRun {
  border: Border;
  namespace: string;
  /** Files of values, in order; they may hold secrets. */
  values?: { name: string; content: string }[];
  /** Folder for private files; one of the machine's without. */
  folder?: string;
  signal: AbortSignal;
  timeoutSeconds: number;
  onLine?: (line: string, stream: 'stdout' | 'stderr') => void;
}

/**
 * Runs helm with files that only this account reads, which are removed behind it. Secrets stand in those alone. Throws RuntimeError for a
 * program that cannot be started, runs out of time, or is cancelled; answers its end otherwise.
 */
export async function runHelm(
  program: string | null | undefined,
  args: string[],
  run: HelmRun,
): Promise<CommandResult> {
  if (!program) throw new RuntimeError('refused', (await helmProblem(null))!);
  const home = await mkdtemp(path.join(run.folder ?? tmpdir(), 'qd-helm-'));
  try {
    const env = environmentIn(home);
    await writeFile(env['KUBECONFIG']!, JSON.stringify(kubeconfigOf(run)), { mode: 0o600 });
    const files = await writeValues(home, run.values ?? []);
    return await runCommand(program, [...args, ...files.flatMap((file) => ['--values', file])], {
      cwd: home,
      env,
      signal: run.signal,
      timeoutSeconds: run.timeoutSeconds,
      keepBytes: KEEP_BYTES,
      ...(run.onLine ? { onLine: run.onLine } : {}),
    });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

const kubeconfigOf = ({ border, namespace }: HelmRun) => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'border',
  contexts: [{ name: 'border', context: { cluster: 'border', namespace } }],
  clusters: [{ name: 'border', cluster: { server: border.url } }],
});

async function writeValues(home: string, values: { name: string; content: string }[]): Promise<string[]> {
  const folder = path.join(home, 'values');
  await mkdir(folder, { mode: 0o700 });
  const files = values.map((_value, index) => path.join(folder, `${index}.yaml`));
  for (const [index, file] of files.entries()) await writeFile(file, values[index]!.content, { mode: 0o600 });
  return files;
}
