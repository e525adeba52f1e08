import { lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Program } from '#test/harness/program.ts';

const SECRET = 'canary-of-the-first-organization';

let program: Program;
beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
});
afterAll(() => program.close());

/** Paths below a folder that every account of the machine can read or list. */
function readableByAll(root: string): string[] {
  const found: string[] = [];
  const walk = (path: string): void => {
    const entry = lstatSync(path);
    if (entry.isSymbolicLink() || entry.isSocket()) return;
    if (entry.mode & 0o004) found.push(relative(root, path) || '.');
    // Without the right to enter a folder nothing below it can be reached.
    if (entry.isDirectory() && entry.mode & 0o001) for (const name of readdirSync(path)) walk(join(path, name));
  };
  walk(root);
  return found;
}

test('after a deployment no other account of the machine reads anything in the data directory', async () => {
  const repository = program.makeRepository();
  repository.commit({
    'secret.txt': SECRET,
    Dockerfile: 'FROM scratch\nWORKDIR /app\nCOPY . .\nCMD ["sleep", "1000"]\n',
  });
  const [organization] = (await program.ask('GET', '/organization')).results;
  const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'p' });
  const environment = await program.ask('POST', `/project/${project.id}/environment`, { name: 'e' });
  await program.ask('POST', `/environment/${environment.id}/application`, {
    name: 'a',
    git_repository: { url: repository.url, branch: 'HEAD' },
    dockerfile_path: 'Dockerfile',
  });
  const { state } = await program.ask('POST', `/environment/${environment.id}/deploy?wait=60`);
  expect(state).toBe('DEPLOYED');
  expect(readableByAll(program.dataDir)).toEqual([]);
});
