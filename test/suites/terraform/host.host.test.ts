import { afterAll, describe, expect, test } from 'vitest';
import { PROGRAMS } from '#services/kinds/terraform/testing.ts';
import type { Engine } from '#services/kinds/terraform/schema.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { useHostEngine } from '#test/harness/real-engine.ts';
import { makeService, testLife, type TerraformStage } from './scenario.ts';

const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder });
const lines: string[] = [];
useHostEngine(app, (line) => lines.push(line), 'auto');

for (const { engine, program, isHere } of PROGRAMS)
  describe.skipIf(!isHere)(`a service of ${program} on a host cluster`, () => testLifeOf(engine));

function testLifeOf(engine: Engine): void {
  const stage: TerraformStage = { app, repositories, runtime: 'host', engine, version: '', lines };
  testLife(stage);

  test('names the version that is missing, and how it is got', async () => {
    const admin = await app.organization();
    const { environmentId, url } = await makeService(stage, admin);
    ok(await admin.put(url, { provider_version: { explicit_version: '0.99.0' } }), 200);
    expect(ok(await admin.post(`${url}/deploy?wait=120`, {}), 200).state).toMatch(/ERROR$/);
    const log = JSON.stringify(ok(await admin.get(`/environment/${environmentId}/logs`), 200));
    expect(log).toMatch(engine === 'TERRAFORM' ? /Terraform 0\.99\.0 is not on/ : /OpenTofu 0\.99\.0 is not on/);
    expect(log).toContain('QUARTERDECK_TERRAFORM_PROGRAMS');
  });
}
