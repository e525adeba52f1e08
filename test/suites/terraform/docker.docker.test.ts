import { afterAll, beforeAll, describe, inject } from 'vitest';
import { PROGRAMS } from '#services/kinds/terraform/testing.ts';
import { useApp } from '#test/harness/app.ts';
import { ensureTerraformImage, removeImages, TERRAFORM_IMAGE } from '#test/harness/docker-images.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useDockerEngine } from '#test/harness/real-engine.ts';
import { testLife } from './scenario.ts';

const [image, version] = TERRAFORM_IMAGE.split(':') as [string, string];
const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder, QUARTERDECK_TERRAFORM_IMAGE: image });
const lines: string[] = [];

// OpenTofu's own images cannot be the base of a build: there the base comes from a registry, and its packages from a mirror.
const terraform = PROGRAMS.find(({ engine }) => engine === 'TERRAFORM')!;

describe.skipIf(!terraform.isHere)('a Terraform service on a docker cluster', () => {
  beforeAll(() => ensureTerraformImage(inject('docker').socketPath));
  afterAll(() => removeImages(inject('docker').socketPath, [TERRAFORM_IMAGE]));
  useDockerEngine(app, inject('docker').socketPath, (line) => lines.push(line));
  testLife({ app, repositories, runtime: 'docker', engine: terraform.engine, version, lines });
});
