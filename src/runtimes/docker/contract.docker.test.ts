import Docker from 'dockerode';
import { inject } from 'vitest';
import { createDockerRuntime } from '#runtimes/docker/index.ts';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { leftoversOf } from './testing.ts';

describeRuntimeContract(
  'docker',
  async ({ router, directory, installation }) => {
    const { socketPath } = inject('docker');
    const engine = new Docker({ socketPath });
    const make = () =>
      createDockerRuntime({ socketPath, installation, router, dataDir: directory, log: () => undefined });
    return {
      runtime: await make(),
      leftovers: (identity) => leftoversOf(engine, identity),
      reopen: make,
    };
  },
  { baseImage: NODE_IMAGE },
);
