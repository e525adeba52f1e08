import Docker from 'dockerode';
import { afterAll, beforeAll, describe, inject } from 'vitest';
import { HAS_TERRAFORM } from '#services/kinds/terraform/testing.ts';
import { makeableImages, pushServerImages } from '#test/harness/database-images.ts';
import { ensureTerraformImage, removeImages, TERRAFORM_IMAGE } from '#test/harness/docker-images.ts';
import { engineState } from '#test/harness/docker-state.ts';
import { Program } from '#test/harness/program.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';
import type { Stage } from './build.ts';
import { testWholeEnvironment } from './scenario.ts';

const versions = makeableImages();
const [terraformImage, terraformVersion] = TERRAFORM_IMAGE.split(':') as [string, string];
let program: Program;
let registry: TestRegistry;
let stage: Stage;

beforeAll(async () => {
  const { socketPath } = inject('docker');
  const docker = new Docker({ socketPath });
  registry = await startRegistry();
  await pushServerImages(socketPath, registry.host);
  if (HAS_TERRAFORM) await ensureTerraformImage(socketPath);
  else console.warn('Left out: the Terraform service, whose program is not on this machine.');
  program = await Program.start({
    ...ALLOW_LOOPBACK,
    QUARTERDECK_RUNTIME: 'docker',
    DOCKER_HOST: `unix://${socketPath}`,
    QUARTERDECK_DATABASE_IMAGE_PREFIX: `${registry.host}/library/`,
    QUARTERDECK_TERRAFORM_IMAGE: terraformImage,
  });
  stage = {
    program,
    postgresql: versions.POSTGRESQL!,
    terraform: HAS_TERRAFORM ? { explicit_version: terraformVersion } : null,
    images: { registry, redis: versions.REDIS!, mysql: versions.MYSQL! },
    machine: () => engineState(docker),
    leftOf: async (ids) => {
      const { containers, networks, volumes, images } = await engineState(docker);
      return [...containers, ...networks, ...volumes, ...images].filter((name) => ids.some((id) => name.includes(id)));
    },
  };
}, 300_000);
afterAll(async () => {
  await program.close();
  await registry.stop();
  if (HAS_TERRAFORM) await removeImages(inject('docker').socketPath, [TERRAFORM_IMAGE]);
});

describe.skipIf(!versions.POSTGRESQL || !versions.REDIS || !versions.MYSQL)('on Docker', () => {
  testWholeEnvironment(() => stage);
});
