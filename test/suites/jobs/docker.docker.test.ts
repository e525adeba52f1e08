import Docker from 'dockerode';
import { inject } from 'vitest';
import { useDockerEngine } from '#test/harness/real-engine.ts';
import { testJobs, useJobs } from './scenario.ts';

const { socketPath } = inject('docker');
const docker = new Docker({ socketPath });
const { app, repositories } = useJobs();
const { router } = useDockerEngine(app, socketPath, () => undefined);

testJobs({
  app,
  router,
  repositories,
  runtime: 'docker',
  runsOf: async (job) => {
    const filters = { label: [`quarterdeck.service=${job}`], status: ['running'] };
    return (await docker.listContainers({ filters })).length;
  },
});
