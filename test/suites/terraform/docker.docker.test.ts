import { afterAll, beforeAll, describe, inject } from 'vitest';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createDockerRuntime } from '#runtimes/docker/index.ts';
import { HAS_TERRAFORM } from '#services/kinds/terraform/testing.ts';
import { useApp } from '#test/harness/app.ts';
import { ensureTerraformImage, removeImages, TERRAFORM_IMAGE } from '#test/harness/docker-images.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useEngineOn } from '#test/suites/security/host-engine.ts';
import { testLife } from './scenario.ts';

const [image, version] = TERRAFORM_IMAGE.split(':') as [string, string];
const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder, QUARTERDECK_TERRAFORM_IMAGE: image });
const lines: string[] = [];

describe.skipIf(!HAS_TERRAFORM)('a Terraform service on a docker cluster', () => {
  beforeAll(() => ensureTerraformImage(inject('docker').socketPath));
  afterAll(() => removeImages(inject('docker').socketPath, [TERRAFORM_IMAGE]));
  useEngineOn(app, () =>
    createDockerRuntime({
      socketPath: inject('docker').socketPath,
      installation: app.installationId,
      router: new MemoryRouter(),
      dataDir: app.platform.settings.dataDir,
      log: (line) => lines.push(line),
    }),
  );
  testLife({ app, repositories, runtime: 'docker', version, lines });
});
