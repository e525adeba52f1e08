import { processesWith } from '#test/suites/housekeeping/host-machine.ts';
import { useHostEngine } from '#test/harness/real-engine.ts';
import { testJobs, useJobs } from './scenario.ts';

const { app, repositories } = useJobs();
const { router } = useHostEngine(app, () => undefined);

testJobs({ app, router, repositories, runtime: 'host', runsOf: (job) => processesWith(job).length });
