import { httpUrl } from '#platform/settings/address.ts';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Listr } from 'listr2';
import { tokenFile } from '#clusters/first-steps.ts';
import { createQuietLog } from '#platform/telemetry/log.ts';
import type { Running } from '#app/start.ts';
import { ApiClient, readPage, until } from '#cli/api-client.ts';
import { exampleApplication } from '#cli/first-deployment.ts';
import { print } from '#cli/print.ts';
import { answersReady } from '#cli/running.ts';
import { startShowing } from '#cli/start.ts';
import { printable } from '#kernel/printable.ts';
import { refuseMoved } from '#platform/move/record.ts';
import type { Settings } from '#platform/settings/index.ts';

const DEPLOY_SECONDS = 600;
const REMOVE_SECONDS = 120;

/** Objects that the demo has created so far. */
interface Demo {
  api: ApiClient;
  projectId?: string;
  applicationId?: string;
  url?: string;
  answer?: string;
}

/** Deploys the example on the running service, or starts a service for it. After the removal nothing is left. */
export async function demoCommand(settings: Settings, options: { remove?: true; keep?: true }): Promise<void> {
  refuseMoved(settings.dataDir);
  const running = (await answersReady(settings)) ? undefined : await startShowing(settings, createQuietLog());
  try {
    const url = running?.url ?? httpUrl(settings.host, settings.port);
    if (running && !running.url) throw new Error('The demo needs the API: QUARTERDECK_ROLE=worker has none.');
    print(`${running ? 'Started a service' : 'Using the service that runs'} at ${url}.`);
    const removed = await deployAndRemove({ api: new ApiClient(url, readToken(settings)) }, options);
    if (running && removed && !(await isAnythingDeployed(running))) await running.runtimes.endProxy();
  } finally {
    await running?.stop();
  }
}

function readToken(settings: Settings): string {
  const file = tokenFile(settings);
  if (!existsSync(file))
    throw new Error(`There is no ${file}: set QUARTERDECK_DATA_DIR to the data directory of the service that runs.`);
  return readFileSync(file, 'utf8').trim();
}

async function isAnythingDeployed({ base }: Running): Promise<boolean> {
  const { db } = base.database;
  const row = await db.selectFrom('service').select('id').where('wanted', '=', 'running').limit(1).executeTakeFirst();
  return row !== undefined;
}

/** Deploys the example and removes it, unless the options keep it. Returns whether it was removed. */
async function deployAndRemove(demo: Demo, options: { remove?: true; keep?: true }): Promise<boolean> {
  try {
    await new Listr<Demo>(deploying(), { ctx: demo, renderer: 'default', fallbackRenderer: 'simple' }).run();
  } catch (error) {
    if (demo.projectId && !options.keep) await remove(demo);
    throw error;
  }
  print(`\n  ${demo.url}\n\n${demo.answer!.trim()}\n`);
  if (options.remove || (!options.keep && (await wantsRemoval()))) {
    await remove(demo);
    return true;
  }
  print(`It stays. To remove it: DELETE /project/${demo.projectId}`);
  return false;
}

function deploying() {
  return [
    {
      title: 'Make a project and an environment',
      task: async (demo: Demo) => {
        const { results } = await demo.api.call<{ results: { id: string }[] }>('GET', '/organization');
        const name = `demo-${Date.now().toString(36)}`;
        demo.projectId = await make(demo, `/organization/${results[0]!.id}/project`, { name });
        const production = { name: 'production', mode: 'PRODUCTION' };
        const environmentId = await make(demo, `/project/${demo.projectId}/environment`, production);
        demo.applicationId = await make(demo, `/environment/${environmentId}/application`, exampleApplication());
      },
    },
    {
      title: 'Build and deploy the example application',
      task: async (demo: Demo, task: { title: string }) => {
        const title = task.title;
        await demo.api.call('POST', `/application/${demo.applicationId}/deploy`);
        await until(DEPLOY_SECONDS, `The deployment does not end within ${DEPLOY_SECONDS} s.`, async () => {
          const { state } = await demo.api.call<{ state: string }>('GET', `/application/${demo.applicationId}/status`);
          task.title = `${title} (${state})`;
          if (/ERROR|CANCELED/.test(state)) throw new Error(await whyFailed(demo, state));
          return state === 'DEPLOYED' ? state : undefined;
        });
      },
    },
    {
      title: 'Ask it at its address',
      task: async (demo: Demo) => {
        const links = await demo.api.call<{ results: { url: string }[] }>(
          'GET',
          `/application/${demo.applicationId}/link`,
        );
        demo.url = links.results[0]!.url;
        const { status, text } = await readPage(demo.url);
        if (status !== 200) throw new Error(`${demo.url} answers ${status}: ${printable(text)}`);
        demo.answer = text;
      },
    },
  ];
}

const make = async ({ api }: Demo, path: string, body: unknown): Promise<string> =>
  (await api.call<{ id: string }>('POST', path, body)).id;

/** Returns a message with the state and the last lines of the log. */
async function whyFailed({ api, applicationId }: Demo, state: string): Promise<string> {
  const { environment } = await api.call<{ environment: { id: string } }>('GET', `/application/${applicationId}`);
  const lines = await api.call<
    { message?: { safe_message?: string } | null; error?: { user_log_message?: string } | null }[]
  >('GET', `/environment/${environment.id}/logs`);
  const texts = lines.map((line) => line.error?.user_log_message ?? line.message?.safe_message ?? '').filter(Boolean);
  return [`The deployment ended as ${state}.`, ...texts.slice(-10).map((text) => `  ${printable(text)}`)].join('\n');
}

async function wantsRemoval(): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return !/^n/i.test(await terminal.question('Remove it again? [Y/n] '));
  } finally {
    terminal.close();
  }
}

async function remove(demo: Demo): Promise<void> {
  const task = async () => {
    await demo.api.call('DELETE', `/project/${demo.projectId}`);
    await until(REMOVE_SECONDS, `The project is not gone within ${REMOVE_SECONDS} s.`, async () =>
      (await demo.api.exists(`/project/${demo.projectId}`)) ? undefined : true,
    );
  };
  await new Listr([{ title: 'Remove it, with everything that was made', task }], { fallbackRenderer: 'simple' }).run();
}
