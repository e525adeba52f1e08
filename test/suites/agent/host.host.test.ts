import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { tryMachine } from '#runtimes/host/testing.ts';
import { fetchAgent, type AgentProgram } from '#test/harness/agent.ts';
import { startTestApp, type TestApp } from '#test/harness/app.ts';
import { ALLOW_LOOPBACK } from '#test/harness/registry.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { processesWith } from '#test/suites/housekeeping/host-machine.ts';
import { useHostEngine } from '#test/harness/real-engine.ts';
import { startSurroundings, testRun, type Surroundings } from './scenario.ts';

const { namespaces } = await tryMachine();
const agent: AgentProgram = await fetchAgent();
afterAll(() => agent.remove());
if (!agent.program) console.warn(`Left out: the agent's own program can't be had (${agent.reason}).`);

/** Returns a program that downloads the agent with Node.js, which every view has. */
const FETCH = (url: string) =>
  `await require('fs').promises.writeFile('/usr/local/bin/claude', Buffer.from(await (await fetch('${url}')).arrayBuffer()), { mode: 0o755 })`;

describe.skipIf(!agent.program || !namespaces)(
  "an agentic workflow with the agent's own program on a host cluster",
  () => {
    const repositories = makeRepositoryRoot();
    const app = {} as TestApp;
    let surroundings: Surroundings;

    beforeAll(async () => {
      surroundings = await startSurroundings(agent);
      Object.assign(
        app,
        await startTestApp({
          ...ALLOW_LOOPBACK,
          QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
          QUARTERDECK_AGENT_MODEL_URL: surroundings.model.url,
        }),
      );
    }, 60_000);
    afterAll(async () => {
      await app.close();
      await surroundings.stop();
      repositories.remove();
    });
    useHostEngine(app, () => undefined, 'auto');

    testRun(() => ({
      app,
      repositories,
      surroundings,
      runtime: 'host',
      install: (url) => `RUN node -e "(async () => { ${FETCH(url)} })()"`,
      leftOf: async ({ serviceId }) => {
        const { dataDir } = app.platform.settings;
        const tasks = path.join(dataDir, 'host/services', serviceId, 'tasks');
        const folders = ['host/services', 'images'].map((name) => path.join(dataDir, name, serviceId));
        const processes = processesWith(serviceId);
        return {
          ofRun: [...processes, ...[tasks].filter((folder) => existsSync(folder))],
          all: [...processes, ...folders.filter((folder) => existsSync(folder))],
        };
      },
    }));
  },
);
