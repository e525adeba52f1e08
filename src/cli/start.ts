import path from 'node:path';
import { createLog } from '#app/log.ts';
import { start, tokenFile, type Running } from '#app/start.ts';
import { firstDeployment } from '#cli/first-deployment.ts';
import { Progress } from '#cli/progress.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Starts the service and runs it until a signal asks it to end. A second signal ends it at once. */
export async function startCommand(settings: Settings): Promise<void> {
  const began = performance.now();
  const log = createLog(settings);
  const progress = new Progress();
  const running = await start(settings, log, (text) => progress.show(text)).finally(() => progress.clear());
  console.log(await welcome(running, settings, performance.now() - began));
  await signalled();
  console.log('Stopping: running deployments are handed over, deployed services stay up.');
  await running.stop();
}

async function welcome(running: Running, settings: Settings, milliseconds: number): Promise<string> {
  const lines = [
    `Quarterdeck is ready in ${Math.round(milliseconds)} ms`,
    `  API          ${running.url ?? 'not in this process (role worker)'}`,
    `  operations   ${running.operationsUrl}  (/healthz, /readyz, /metrics)`,
  ];
  if (settings.role !== 'api')
    lines.push(
      `  services     http://<service>.${settings.proxyDomain}:${(await running.runtimes.router()).port}  (runtime ${running.runtime})`,
    );
  lines.push(`  token        in ${path.relative(process.cwd(), tokenFile(settings)) || tokenFile(settings)}`);
  if (running.first && running.url)
    lines.push(
      '',
      'The administrator token, shown only now:',
      '',
      `  ${running.first.token}`,
      '',
      'A first deployment to paste:',
      '',
      firstDeployment(running.url, settings, running.first.organizationId),
    );
  return lines.join('\n');
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.on(signal, () => {
        process.once(signal, () => process.exit(130));
        resolve();
      });
  });
}
