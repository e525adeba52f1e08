import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRegistry } from '#test/harness/images.ts';

const app = useApp();
const FOLDER = path.join(import.meta.dirname, '../../docs/kinds');
const pages = globSync('*.md', { cwd: FOLDER }).toSorted();

/** What stands for the id of something that has to be there. */
const MADE: Record<string, (admin: Actor) => Promise<string>> = {
  '<id of the container registry>': (admin) => makeRegistry(admin, { url: 'https://registry.example.com' }),
};

/** The first block of each language of a page. */
function blockOf(text: string, language: string): string {
  const found = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(text);
  expect(found, `a block of ${language}`).not.toBeNull();
  return found![1]!;
}

test.each(pages)('the example of docs/kinds/%s can be created as it is printed', async (page) => {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'shop' }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'production' }), 201);
  const text = readFileSync(path.join(FOLDER, page), 'utf8');
  const [method, place] = blockOf(text, 'http').trim().split(' ');
  expect(method).toBe('POST');
  let body = blockOf(text, 'json');
  for (const [mark, make] of Object.entries(MADE))
    if (body.includes(mark)) body = body.replace(mark, await make(admin));
  const made = ok(await admin.post(place!.replace('{environmentId}', environment.id), JSON.parse(body)), 201);
  expect(made).toMatchObject({ name: JSON.parse(body).name });
});
