import path from 'node:path';
import type { Logger } from 'pino';
import { inspectProxy } from '#app/inspect.ts';
import { tidyWhenIdle } from '#kernel/idle.ts';
import { createLog } from '#platform/telemetry/log.ts';
import { tokenFile } from '#clusters/first-steps.ts';
import { start, type Running } from '#app/start.ts';
import { firstDeployment } from '#cli/first-deployment.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { systemContext } from '#platform/context.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { makeLinkFor } from '#resources/sign-in/index.ts';
import { readInstallation } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Starts the service and runs it until a signal asks it to end. A second signal ends it at once. */
export async function startCommand(settings: Settings): Promise<void> {
  const began = performance.now();
  const log = await createLog(settings);
  const running = await startShowing(settings, log);
  tidyWhenIdle();
  // Whoever reads the welcome may send a signal at once.
  const end = signalled();
  print(await welcome(running, performance.now() - began));
  await end;
  print('Stopping: running deployments are handed over, deployed services stay up.');
  await running.stop();
}

/** Starts the service and shows what takes its time. */
export async function startShowing(settings: Settings, log: Logger): Promise<Running> {
  const progress = new Progress();
  return start(settings, log, (text) => progress.show(text)).finally(() => progress.clear());
}

async function welcome(running: Running, milliseconds: number): Promise<string> {
  const { settings } = running;
  const lines = [
    `Quarterdeck is ready in ${Math.round(milliseconds)} ms`,
    `  API          ${running.url ?? 'not in this process (role worker)'}`,
    `  operations   ${running.operationsUrl}  (/healthz, /readyz, /metrics)`,
  ];
  if (settings.role !== 'api' && !settings.temporaryData)
    lines.push(
      `  services     http://<service>.${settings.proxyDomain}:${(await running.runtimes.router()).port}  (runtime ${running.runtime})`,
    );
  if (settings.role !== 'api' && !settings.temporaryData) {
    for (const { name, found, advice } of await inspectProxy(settings))
      lines.push(`  ${name.padEnd(12)} ${found}`, ...advice.map((line) => `               ${line}`));
  }
  if (!settings.temporaryData)
    lines.push(`  token        in ${path.relative(process.cwd(), tokenFile(settings)) || tokenFile(settings)}`);
  const { readOnlySince } = await readInstallation(running.base.database.db);
  if (readOnlySince)
    lines.push(
      '',
      'The installation is READ-ONLY after a restore: nothing is deployed, scheduled or sent.',
      'Look at `quarterdeck world`, then end this with `quarterdeck restore --accept`.',
    );
  if (running.first?.token && running.url) {
    // Elsewhere the output is a log, which others read: the token stays in its file, and `quarterdeck user link` makes a link.
    if (process.stdout.isTTY) {
      lines.push('', 'The administrator token, shown only now:', '', `  ${running.first.token}`);
      if (takesPasswords(settings)) lines.push('', ...(await firstLink(running, running.first.administratorId)));
    }
    lines.push(
      '',
      'A first deployment to paste:',
      '',
      firstDeployment(running.url, settings, running.first.organizationId),
    );
  }
  return lines.join('\n');
}

/** Makes the link by which the first administrator signs in with a browser. */
async function firstLink({ base, settings }: Running, administratorId: string): Promise<string[]> {
  const context = systemContext({ ...base.platform, settings }, 'quarterdeck start');
  const { url } = await makeLinkFor(context, administratorId);
  return ['Your own account in a browser, once, within 24 hours:', '', `  ${url}`];
}

/** A supervisor and our own wrapper may each pass the same signal on: what comes so soon after the first is the first again. */
const ECHO_MS = 300;

/** Waits for a signal; another one after it ends the process at once. */
function signalled(): Promise<void> {
  let at: number | undefined;
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        if (at !== undefined && performance.now() - at > ECHO_MS) process.exit(130);
        at ??= performance.now();
        resolve();
      });
  });
}
