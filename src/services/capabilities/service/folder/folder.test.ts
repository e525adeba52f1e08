import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { archiveOf, packedOf, type ArchiveEntry } from '#kernel/parsing/archive.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { trimUploads } from '#services/sources/uploads/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp({
  QUARTERDECK_SOURCE_UPLOAD_MB: '3',
  QUARTERDECK_SOURCE_UNPACKED_MB: '5',
  QUARTERDECK_SOURCE_FILES: '50',
  QUARTERDECK_KEPT_SOURCE_UPLOADS: '2',
});
useEngine(app);
const TYPE = { 'content-type': 'application/gzip' };
const DOCKERFILE: ArchiveEntry = ['Dockerfile', 'FROM scratch\nCMD ["/hello"]\n'];
const folderOf = (text: string) => packedOf(DOCKERFILE, ['text.txt', text]);

async function make(admin: Actor) {
  const example = await makeExample(admin);
  const one = `/application/${example.application.id}`;
  const upload = (archive: Buffer, headers: Record<string, string> = {}, query = '?wait=40', caller = admin) =>
    caller.post(`${one}/source${query}`, archive, { ...TYPE, ...headers });
  const deployed = async (text: string) => {
    const answer = ok(await upload(await folderOf(text)), 202);
    expect(answer.state).toBe('DEPLOYED');
    return answer;
  };
  const uploads = () => app.db.selectFrom('source_upload').selectAll().where('service_id', '=', example.application.id).orderBy('created_at').execute(); // prettier-ignore
  return { ...example, id: example.application.id as string, one, upload, deployed, uploads };
}

const stepsOf = (answer: any): string[] => answer.steps.details.map((step: any) => step.step_name);

describe('an uploaded folder', () => {
  test('is answered 202 with its commit, which is deployed and shown, and leaves the repository as it is', async () => {
    const admin = await app.organization();
    const { one, upload, application, uploads } = await make(admin);
    const answer = ok(await upload(await folderOf('first'), {}, ''), 202);
    expect(answer).toMatchObject({ state: 'DEPLOYMENT_QUEUED', files: 2, size_in_bytes: 33 });
    expect(answer.git_commit_id).toMatch(/^[0-9a-f]{40}$/);
    expect(answer.deployment_request_id).toBeTypeOf('string');
    await expect.poll(async () => ok(await admin.get(`${one}/status`), 200).state).toBe('DEPLOYED');
    const [last] = ok(await admin.get(`${one}/deploymentHistory`), 200).results;
    const [stored] = await uploads();
    expect(last.commit).toMatchObject({ git_commit_id: answer.git_commit_id, message: 'Uploaded folder' });
    expect(last.commit.author_name).toBe(stored!.author);
    expect(last.commit.commit_page_url).toBeUndefined();
    const { git_repository } = ok(await admin.get(one), 200);
    expect(git_repository).toMatchObject({
      url: application.git_repository.url,
      deployed_commit_id: answer.git_commit_id,
    });
    const events = ok(await admin.get(`/organization/${admin.organizationId}/events?targetId=${application.id}`), 200);
    expect(events.events.map((event: any) => event.event_type)).toEqual(
      expect.arrayContaining(['TRIGGER_DEPLOY', 'DEPLOY_QUEUED']),
    );
  });

  test('has the commit id that git gives it, and the same one when it is uploaded again', async () => {
    const { deployed, upload, uploads } = await make(await app.organization());
    const first = await deployed('same');
    // Another order, other times, no compression: the content is the same.
    const again = ok(await upload(await archiveOf(['text.txt', 'same'], { name: 'empty/', type: 'directory' }, DOCKERFILE)), 202); // prettier-ignore
    expect(again.git_commit_id).toBe(first.git_commit_id);
    expect(stepsOf(again)).toEqual(['DEPLOYMENT']);
    const [{ tree_id, commit_id, committed_at, author }] = (await uploads()) as [any];
    const blob = (text: string) => execFileSync('git', ['hash-object', '-t', 'blob', '--stdin'], { input: text, encoding: 'utf8' }).trim(); // prettier-ignore
    const entry = (name: string, text: string) => Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blob(text), 'hex')]); // prettier-ignore
    const tree = Buffer.concat([entry('Dockerfile', (DOCKERFILE as [string, string])[1]), entry('text.txt', 'same')]);
    const hashed = (type: string, input: Buffer | string) =>
      execFileSync('git', ['hash-object', '-t', type, '--literally', '--stdin'], { input, encoding: 'utf8' }).trim();
    expect(tree_id).toBe(hashed('tree', tree));
    const person = `${author} <> ${committed_at.getTime() / 1000} +0000`;
    expect(commit_id).toBe(hashed('commit', `tree ${tree_id}\nauthor ${person}\ncommitter ${person}\n\nUploaded folder`)); // prettier-ignore
  });

  test('is deployed again by its id, by a redeploy and by a rollback; a deploy without one takes the branch', async () => {
    const admin = await app.organization();
    const { one, deployed } = await make(admin);
    const first = await deployed('first');
    const second = await deployed('second');
    const commit = async () => ok(await admin.get(one), 200).git_repository.deployed_commit_id;
    ok(await admin.post(`${one}/redeploy?wait=40`), 200);
    expect(await commit()).toBe(second.git_commit_id);
    const short = { git_commit_id: first.git_commit_id.slice(0, 10) };
    ok(await admin.post(`${one}/deploy?wait=40`, short), 200);
    expect(await commit()).toBe(first.git_commit_id);
    ok(await admin.post(`${one}/rollback?wait=40`, { execution_id: second.execution_id }), 200);
    expect(await commit()).toBe(second.git_commit_id);
    expect(ok(await admin.post(`${one}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
    expect([first.git_commit_id, second.git_commit_id]).not.toContain(await commit());
  });

  test('of megabytes is stored in parts of 1 MiB, from which it is built', async () => {
    const admin = await app.organization();
    const { deployed, uploads } = await make(admin);
    const answer = await deployed(randomBytes(2.2 * 2 ** 20).toString('base64'));
    const [{ id, packed_bytes }] = (await uploads()) as [any];
    const parts = await app.db.selectFrom('source_upload_part').select(['number', sql<number>`length(content)`.as('bytes')]).where('upload_id', '=', id).orderBy('number').execute(); // prettier-ignore
    expect(parts.map(({ number }) => number)).toEqual([0, 1, 2]);
    expect(parts.slice(0, 2).map(({ bytes }) => bytes)).toEqual([2 ** 20, 2 ** 20]);
    expect(parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(Number(packed_bytes));
    expect(answer.deployment_git_commit_id).toBe(answer.git_commit_id);
  });

  test('is requested once with an Idempotency-Key, and another folder with the same key is refused', async () => {
    const { upload, uploads } = await make(await app.organization());
    const key = { 'idempotency-key': newId() };
    const first = ok(await upload(await folderOf('once'), key), 202);
    const again = ok(await upload(await folderOf('once'), key), 202);
    expect(again.deployment_request_id).toBe(first.deployment_request_id);
    expect((await upload(await folderOf('other'), key)).status).toBe(409);
    expect((await uploads()).length).toBeLessThanOrEqual(2);
    // The same content is the same request, also where it is no longer kept and becomes another commit.
    await app.db.deleteFrom('source_upload').where('commit_id', '=', first.git_commit_id).execute();
    const later = ok(await upload(await folderOf('once'), key), 202);
    expect(later.deployment_request_id).toBe(first.deployment_request_id);
  });
});

describe('an upload that is refused changes nothing', () => {
  let admin: Actor;
  let made: Awaited<ReturnType<typeof make>>;
  beforeAll(async () => {
    admin = await app.organization();
    made = await make(admin);
  });
  const nothing = async () => {
    expect(await made.uploads()).toEqual([]);
    expect(ok(await admin.get(`${made.one}/status`), 200).state).toBe('READY');
  };

  test.each<[string, () => Promise<Buffer> | Buffer, number, RegExp]>([
    ['a link that leads out', () => packedOf(DOCKERFILE, { name: 'x', type: 'symlink', linkname: '/etc' }), 400, /archive: the link "x" leads to "\/etc", out of the folder/], // prettier-ignore
    ['an entry of .git', () => packedOf(DOCKERFILE, ['.git/config', 'x']), 400, /the entry ".git\/config" belongs to git itself: leave it out/], // prettier-ignore
    ['a name with ..', () => packedOf(['../x', 'x']), 400, /the entry "..\/x" leads out of the folder/],
    ['no tar', () => Buffer.from('PK'.repeat(1000)), 400, /it is not a tar archive/],
    ['a truncated gzip', async () => (await folderOf('x'.repeat(1000))).subarray(0, 100), 400, /it is not whole/],
    ['an empty body', () => Buffer.alloc(0), 400, /A body is required/],
    ['too many bytes', () => Buffer.alloc(3 * 2 ** 20 + 1), 413, /larger than 3 MiB/],
    ['too many bytes when unpacked', () => packedOf(['x', 'x'.repeat(6 * 2 ** 20)]), 400, /larger than 5 MiB when it is unpacked/], // prettier-ignore
    ['too many files', () => packedOf(...Array.from({ length: 51 }, (_, at): ArchiveEntry => [`${at}`, ''])), 400, /more than 50 files/], // prettier-ignore
  ])('of %s', async (_what, archive, status, message) => {
    const answer = await made.upload(await archive());
    expect([answer.status, answer.body.message]).toEqual([status, expect.stringMatching(message)]);
    await nothing();
  });

  test('of another type', async () => {
    const answer = await made.upload(await folderOf('x'), { 'content-type': 'application/x-www-form-urlencoded' });
    expect([answer.status, answer.body.message]).toEqual([415, expect.stringContaining('application/gzip')]);
    await nothing();
  });

  test('by callers without the right to edit and deploy, and by strangers', async () => {
    const archive = await folderOf('x');
    for (const scope of ['READ', 'DEPLOY'] as const)
      expect((await made.upload(archive, {}, '', await admin.withScope(scope))).status, scope).toBe(403);
    const stranger = await app.organization();
    expect((await made.upload(archive, {}, '', stranger)).status).toBe(404);
    expect((await app.anonymous('POST', `${made.one}/source`, archive, TYPE)).status).toBe(401);
    await nothing();
  });

  test('of more than is announced, over a real connection', async () => {
    await app.server.listen({ host: '127.0.0.1', port: 0 });
    const url = `http://127.0.0.1:${(app.server.server.address() as AddressInfo).port}${made.one}/source`;
    const headers = { ...TYPE, authorization: `Token ${admin.token}` };
    // Without a length, as `curl -T -` sends it.
    const body = new ReadableStream({
      start: (controller) => {
        for (let at = 0; at < 60; at++) controller.enqueue(Buffer.alloc(64 * 1024));
        controller.close();
      },
    });
    const answer = await fetch(url, { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    expect(answer.status).toBe(413);
    await nothing();
    const right = await fetch(url, { method: 'POST', headers, body: await folderOf('right') });
    expect(right.status).toBe(202);
  });
});

describe('folders that are kept', () => {
  /** Makes the uploads of a service two hours older. */
  const ageUploads = (id: string) =>
    app.db
      .updateTable('source_upload')
      .set({ requested_at: sql`requested_at - interval '2 hours'` })
      .where('service_id', '=', id)
      .execute();

  test('are those of the last deployments; others are removed, and a build of one says so', async () => {
    const admin = await app.organization();
    const { one, deployed, uploads, id } = await make(admin);
    const answers = [];
    for (const text of ['one', 'two', 'three', 'four']) answers.push(await deployed(text));
    await ageUploads(id);
    await trimUploads(app.db, 2);
    expect((await uploads()).map(({ commit_id }) => commit_id)).toEqual(
      answers.slice(2).map(({ git_commit_id }) => git_commit_id),
    );
    const parts = await app.db.selectFrom('source_upload_part').select('upload_id').execute();
    const ids = (await app.db.selectFrom('source_upload').select('id').execute()).map((row) => row.id);
    expect(parts.every(({ upload_id }) => ids.includes(upload_id))).toBe(true);
    // The image of the first is gone as well, so that it would have to be built.
    await app.db.updateTable('release').set({ image: null }).where('service_id', '=', id).execute();
    const back = ok(await admin.post(`${one}/rollback?wait=40`, { execution_id: answers[0].execution_id }), 200);
    expect(back.state).toMatch(/ERROR$/);
    expect(JSON.stringify(back)).toContain('is no longer kept: upload it again');
  });

  test('that nothing names are removed after an hour, and at once beyond the newest three', async () => {
    const admin = await app.organization();
    const { id, uploads } = await make(admin);
    const insert = (minutes: number, digit: string, isStored = true) =>
      app.db
        .insertInto('source_upload')
        .values({
          id: newId(),
          organization_id: admin.organizationId,
          service_id: id,
          commit_id: digit.repeat(40),
          tree_id: digit.repeat(40),
          author: 'a',
          message: 'm',
          committed_at: new Date(),
          files: 1,
          unpacked_bytes: 1,
          packed_bytes: 1,
          requested_at: new Date(Date.now() - minutes * 60_000),
          stored_at: isStored ? new Date() : null,
        }) // prettier-ignore
        .execute();
    const left = async () => (await uploads()).map(({ commit_id }) => commit_id[0]).sort();
    const trim = () => trimUploads(app.db, 2, { organizationId: admin.organizationId, serviceId: id });
    for (const [at, minutes] of [70, 40, 30, 20, 10].entries()) await insert(minutes, String(at));
    await trim();
    expect(await left()).toEqual(['2', '3', '4']);
    // Parts of these are being written, however many there are.
    for (const [at, minutes] of [70, 5, 4, 3, 2, 1].entries()) await insert(minutes, 'abcdef'[at]!, false);
    await trim();
    expect(await left()).toEqual(['2', '3', '4', 'b', 'c', 'd', 'e', 'f']);
  });

  test('that are uploaded again stay, although only older deployments name them', async () => {
    const { deployed, uploads, id } = await make(await app.organization());
    const commits = [];
    for (const text of ['one', 'two', 'three']) commits.push((await deployed(text)).git_commit_id);
    await ageUploads(id);
    await app.db.updateTable('source_upload').set({ requested_at: new Date() }).where('commit_id', '=', commits[0]).execute(); // prettier-ignore
    await trimUploads(app.db, 2);
    expect((await uploads()).map(({ commit_id }) => commit_id)).toEqual(commits);
    await ageUploads(id);
    await trimUploads(app.db, 2);
    expect((await uploads()).map(({ commit_id }) => commit_id)).toEqual(commits.slice(1));
  });

  test('go with their service', async () => {
    const admin = await app.organization();
    const { one, deployed, uploads } = await make(admin);
    await deployed('gone');
    ok(await admin.delete(`${one}?wait=40`), 204);
    await expect.poll(uploads).toEqual([]);
  });
});
