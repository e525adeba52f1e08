import Docker from 'dockerode';
import { afterAll, beforeAll, describe, inject } from 'vitest';
import { leftoversOf } from '#runtimes/docker/testing.ts';
import { fetchAgent, pushAgentImage, type AgentProgram } from '#test/harness/agent.ts';
import { startTestApp, type TestApp } from '#test/harness/app.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useDockerEngine } from '#test/harness/real-engine.ts';
import { startSurroundings, testRun, type Surroundings } from './scenario.ts';

const { socketPath } = inject('docker');
const agent: AgentProgram = await fetchAgent();
afterAll(() => agent.remove());
if (!agent.program) console.warn(`Left out: the agent's own program can't be had (${agent.reason}).`);

describe.skipIf(!agent.program)("an agentic workflow with the agent's own program on a docker cluster", () => {
  const repositories = makeRepositoryRoot();
  const engine = new Docker({ socketPath });
  const app = {} as TestApp;
  let registry: TestRegistry;
  let surroundings: Surroundings;

  beforeAll(async () => {
    surroundings = await startSurroundings(agent);
    registry = await startRegistry();
    const image = await pushAgentImage(socketPath, registry.host, agent.program!);
    Object.assign(
      app,
      await startTestApp({
        ...ALLOW_LOOPBACK,
        QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
        QUARTERDECK_AGENT_IMAGE: image,
        QUARTERDECK_AGENT_MODEL_URL: surroundings.model.url,
      }),
    );
  }, 300_000);
  afterAll(async () => {
    await app.close();
    await surroundings.stop();
    await registry.stop();
    repositories.remove();
  });
  useDockerEngine(app, socketPath, () => undefined);

  testRun(() => ({
    app,
    repositories,
    surroundings,
    runtime: 'docker',
    install: (url) => `RUN wget -q -O /bin/claude ${url} && chmod 755 /bin/claude`,
    leftOf: async ({ environmentId, serviceId }) => {
      const service = { label: [`quarterdeck.service=${serviceId}`] };
      const environment = { label: [`quarterdeck.environment=${environmentId}`] };
      const [containers, networks] = await Promise.all([
        engine.listContainers({ all: true, filters: service }),
        engine.listNetworks({ filters: environment as never }),
      ]);
      const identity = { installation: app.installationId, serviceId, environmentId } as never;
      return {
        ofRun: [...containers.map(({ Id: id }) => id), ...networks.map(({ Name: name }) => name)],
        all: await leftoversOf(engine, identity),
      };
    },
  }));
});
