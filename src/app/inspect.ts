import { mkdtempSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { createRuntimes } from '#app/runtimes.ts';
import type { Finding } from '#kernel/finding.ts';
import type { Settings } from '#platform/settings/index.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';
import { RuntimeError, type RuntimeReport } from '#runtimes/runtime.ts';

export { inspectProxy } from '#runtimes/proxy/inspect.ts';
export { inspectTerraform, inspectTools } from '#runtimes/tools/inspect.ts';

/** Checks each runtime of this machine and returns the findings, with the runtime that a first cluster would get. */
export async function inspectRuntimes(settings: Settings): Promise<{ chosen: string; findings: Finding[] }> {
  // Without a data directory the machine is tried in a folder that is gone afterwards.
  const own = existsSync(settings.dataDir);
  const dataDir = own ? settings.dataDir : mkdtempSync(path.join(tmpdir(), 'quarterdeck-doctor-'));
  const runtimes = createRuntimes({ ...settings, dataDir }, 'doctor', pino({ level: 'silent' }), async () => NO_ROUTER);
  try {
    const findings: Finding[] = [];
    for (const name of ['docker', 'host']) {
      const report = await runtimes.onMachine(name).then((runtime) => runtime.check(), whyNot);
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
