import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SERVICE_KINDS } from '#services/service/holder.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { readArgoCds, useArgoCd } from '#test/harness/argo-cd.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ASKS_LOOPBACK, makeRegistry, useImages } from '#test/harness/images.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { pageOf } from '../../scripts/kinds-page.ts';

const FOLDER = path.join(import.meta.dirname, '../../docs/kinds');
const repositories = makeRepositoryRoot();
afterAll(() => repositories.remove());
const images = await useImages();
const argo = useArgoCd({ beforeAll, afterAll });
const app = useApp({
  ...ASKS_LOOPBACK,
  QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
  QUARTERDECK_DATABASE_IMAGE_PREFIX: `${images.host}/`,
});
useEngine(app);

const repository = repositories.make();
beforeAll(() => {
  repository.commit({ Dockerfile: 'FROM scratch\n', 'network/main.tf': '', 'shop/production.yaml': 'a: 1\n' });
  argo.put({ name: 'guestbook' });
});

interface PageRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  body?: string;
}

/** Returns the requests of a page: each block of `http`, with the block of `json` right under it as its body. */
function requestsOf(text: string): PageRequest[] {
  const blocks = text.matchAll(/^```http\n(\S+) (\S+)\n```\n(?:\n```json\n(.*?)^```\n)?/gms);
  const requests = [...blocks].map(([, method, where, body]) => ({ method, path: where, body }) as PageRequest);
  expect(requests, 'every block of http is one request').toHaveLength(text.match(/^```http$/gm)?.length ?? 0);
  return requests;
}

/** Returns replacements for the placeholders of a page: ids of existing things, and servers on this machine. */
async function standIns(admin: Actor, clusterId: string): Promise<[string | RegExp, string][]> {
  return [
    ['<id of the container registry>', await makeRegistry(admin, images)],
    ['<id of the cluster>', clusterId],
    ['<token of an Argo CD account>', argo.token],
    ['https://argocd.example.com', argo.url],
    [/https:\/\/github\.com\/acme\/\w+\.git/g, repository.url],
  ];
}

test('each kind of service has a page, and each page is of one', () => {
  expect(globSync('*', { cwd: FOLDER }).toSorted()).toEqual(SERVICE_KINDS.map(pageOf).toSorted());
});

describe.each(SERVICE_KINDS)('the page of %s', (kind) => {
  test('has requests that lead to such a service, deployed where it asks for that', async () => {
    const admin = await app.organization();
    const { organizationId } = admin;
    const project = ok(await admin.post(`/organization/${organizationId}/project`, { name: 'shop' }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'production' }), 201);
    const ids: Record<string, string> = {
      organizationId,
      environmentId: environment.id,
      clusterId: environment.cluster_id,
    };
    const places = await standIns(admin, environment.cluster_id);
    for (const request of requestsOf(readFileSync(path.join(FOLDER, pageOf(kind)), 'utf8'))) {
      const url = request.path.replace(/\{(\w+)\}/g, (mark, name: string) => ids[name] ?? mark);
      const body = places.reduce<string | undefined>((now, [from, to]) => now?.replaceAll(from, to), request.body);
      const answer = await admin.call(request.method, url, body);
      expect(answer.status, `${request.method} ${url}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
      if (url.includes('/deploy?')) expect(answer.body.state).toBe('DEPLOYED');
      if (answer.status === 201) ids[`${request.path.split('/').at(-1)}Id`] = answer.body.id;
      // The program does this in the background.
      await readArgoCds(app.platform);
    }
    const { results } = ok(await admin.get(`/organization/${organizationId}/services`), 200);
    expect(results.map((service: { service_type: string }) => service.service_type)).toEqual([kind]);
  });
});
