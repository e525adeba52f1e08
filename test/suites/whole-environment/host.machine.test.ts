import { afterAll, beforeAll } from 'vitest';
import { HAS_TERRAFORM } from '#services/kinds/terraform/testing.ts';
import { Program } from '#test/harness/program.ts';
import { machineState, processesWith } from '#test/suites/housekeeping/host-machine.ts';
import type { Stage } from './build.ts';
import { testWholeEnvironment } from './scenario.ts';

let stage: Stage;

beforeAll(async () => {
  if (!HAS_TERRAFORM) console.warn('Left out: the Terraform service, whose program is not on this machine.');
  stage = {
    program: await Program.start({ QUARTERDECK_RUNTIME: 'host' }),
    postgresql: '18',
    terraform: HAS_TERRAFORM ? { explicit_version: '', read_from_terraform_block: true } : null,
    // Images of registries need a container engine: without one there are no containers, and no databases but PostgreSQL.
    images: null,
    machine: machineState,
    leftOf: (ids) => ids.flatMap(processesWith),
  };
}, 60_000);
afterAll(() => stage.program.close());

testWholeEnvironment(() => stage);
