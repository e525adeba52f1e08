import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPage } from '#cli/api-client.ts';
import { runCommandLine } from '#cli/index.ts';
import { newId } from '#kernel/ids.ts';
import { Program } from '#test/harness/program.ts';

const SERVER = `import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
const answer = ['TEXT', existsSync('notes.txt'), existsSync('lib/linked.mjs')].join(' ');
createServer((request, response) => response.end(answer)).listen(process.env.PORT);
`;
const DOCKERFILE = 'FROM node:24\nCOPY . .\nCMD ["node", "server.mjs"]\n';

let program: Program;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'qd-folder-'));
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
}, 120_000);
afterAll(async () => {
  await program?.close();
  rmSync(folder, { recursive: true, force: true });
});

function write(files: Record<string, string>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
}

test(
  'a folder is uploaded, answers over HTTP, is replaced by another one, and comes back',
  { timeout: 240_000 },
  async () => {
    const repository = program.makeRepository();
    repository.commit({ Dockerfile: DOCKERFILE, 'server.mjs': SERVER.replace('TEXT', 'repository') });
    const [organization] = (await program.ask('GET', '/organization')).results;
    const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
    const environment = await program.ask('POST', `/project/${project.id}/environment`, { name: 'dev' });
    const application = await program.ask('POST', `/environment/${environment.id}/application`, {
      name: 'web',
      git_repository: { url: repository.url, branch: 'main' },
      ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
    });
    const one = `/application/${application.id}`;
    const [link] = (await program.ask('GET', `${one}/link`)).results;
    const page = async () => (await readPage(link.url)).text;
    const upload = async (flags: string) => {
      const archive = execFileSync('tar', [`-c${flags}f`, '-', '-C', folder, '.']);
      const answer = await program.upload(`${one}/source?wait=120`, archive);
      expect(answer.state, JSON.stringify(answer)).toBe('DEPLOYED');
      return answer;
    };

    write({ Dockerfile: DOCKERFILE, 'server.mjs': SERVER.replace('TEXT', 'first') });
    write({ '.dockerignore': 'notes.txt\n', 'notes.txt': 'not for the image', 'lib/real.mjs': '' });
    execFileSync('ln', ['-s', 'real.mjs', path.join(folder, 'lib/linked.mjs')]);
    const first = await upload('z');
    expect(await page()).toBe('first false true');

    write({ 'server.mjs': SERVER.replace('TEXT', 'second') });
    const second = await upload('');
    expect(await page()).toBe('second false true');
    expect(second.git_commit_id).not.toBe(first.git_commit_id);
    expect((await program.ask('GET', one)).git_repository.deployed_commit_id).toBe(second.git_commit_id);

    write({ 'server.mjs': SERVER.replace('TEXT', 'third'), '.git/config': 'not for anybody' });
    const tokenFile = path.join(program.dataDir, 'admin-token');
    const environmentOf = { QUARTERDECK_DATA_DIR: program.dataDir };
    const up = (id: string) =>
      runCommandLine(
        ['up', folder, '--application', id, '--url', program.running.url!, '--token-file', tokenFile],
        environmentOf,
      );
    expect(await up(application.id)).toBe(0);
    expect(await page()).toBe('third false true');
    expect(await up(newId())).toBe(1);
    const { db } = program.running.base.platform;
    const sizes = await db.selectFrom('source_upload').select('files').orderBy('created_at').execute();
    // Without what the build leaves out, which tar has sent.
    expect(sizes.map(({ files }) => files)).toEqual([6, 6, 5]);

    await program.ask('POST', `${one}/rollback?wait=120`, { execution_id: first.execution_id });
    expect(await page()).toBe('first false true');
    await program.ask('POST', `${one}/deploy?wait=120`, { git_commit_id: second.git_commit_id });
    expect(await page()).toBe('second false true');
    await program.ask('POST', `${one}/deploy?wait=120`);
    expect(await page()).toBe('repository false false');
  },
);
