import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { filesOf } from '#deployments/executor/checkout-files.ts';
import type { ServiceSnapshot } from '#deployments/index.ts';
import { filesOfPaths, forApplication, madeIfAbsent } from '#services/images/made-dockerfile.ts';
import { applicationDeployment } from '#services/kinds/application/deploy.ts';
import type { ApplicationSpec } from '#services/kinds/application/spec.ts';
import { jobDeployment } from '#services/kinds/job/deploy.ts';
import type { JobSpec } from '#services/kinds/job/spec.ts';
import type { GitSource } from '#services/sources/git.ts';

const git = { url: 'https://example.com/a/b.git', branch: 'main', root_path: '/web' } as GitSource;
const options = { organizationId: 'owner', runtime: 'docker', ...forApplication(3000, false) };
const make = (files: Record<string, string>, runtime = 'docker') =>
  madeIfAbsent(git, { ...options, runtime })(
    filesOfPaths({ paths: Object.keys(files), read: async (file) => files[file.replace(/^\/+/, '')] }),
    [],
  );

test('a repository that has a Dockerfile is built with that', async () => {
  expect(await make({ 'web/Dockerfile': '', 'web/package.json': '{}' })).toBeNull();
});

test('a link in the place of the Dockerfile is no reason to make one, wherever it leads', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'made-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(path.join(folder, 'web'));
  writeFileSync(path.join(folder, 'web/index.html'), '');
  const find = madeIfAbsent(git, options);
  expect(await find(filesOf(folder), [])).toMatchObject({ text: expect.stringContaining('caddy') });
  symlinkSync('/etc/passwd', path.join(folder, 'web/Dockerfile'));
  expect(await find(filesOf(folder), [])).toBeNull();
});

test('the whole Dockerfile that is made stands in the notes for the log', async () => {
  const made = (await make({ Dockerfile: '', 'web/index.html': '' }))!;
  const [first, ...lines] = made.notes!;
  expect(first).toBe('There is no Dockerfile; this one is made. Recognised by index.html: files for browsers.');
  expect(lines.map((line) => `${line.slice(2)}\n`).join('')).toBe(made.text);
});

test('on a cluster whose images are the machine itself, the build looks for its programs first', async () => {
  const files = { 'web/index.html': '' };
  expect((await make(files, 'host'))!.text).toContain('This machine has no');
  expect((await make(files, 'kubernetes'))!.text).not.toContain('This machine has no');
});

test('what is not recognised says where a Dockerfile is missed, and what else would help', async () => {
  await expect(make({ 'web/package.json': '{}' })).rejects.toThrow(
    'No file "Dockerfile" at /web of branch main of https://example.com/a/b.git: commit one there, or set dockerfile_path and root_path. This looks like a project of Node.js',
  );
  await expect(make({ 'web/package.json': '{' })).rejects.toThrow(/^web\/package\.json: it is not JSON/);
});

test('a changed port, or a command of its own, is built anew only where the Dockerfile may be made', () => {
  const keyOf = (port: number, dockerfile_path: string | null, words: string[] = []) => {
    const spec = {
      git_repository: git,
      dockerfile_path,
      docker_target_build_stage: null,
      storage: [],
      arguments: words,
      ports: [
        { internal_port: 1, is_default: false },
        { internal_port: port, is_default: true },
      ],
    };
    const service = { serviceId: 'a', name: 'a', kind: 'APPLICATION', spec, variables: [], advancedSettings: {} };
    return applicationDeployment.plan(service as unknown as ServiceSnapshot<ApplicationSpec>, 'DEPLOY', {}, null, [])
      .buildKey;
  };
  expect(keyOf(3000, null)).not.toBe(keyOf(4000, null));
  expect(keyOf(3000, 'Dockerfile')).toBe(keyOf(4000, 'Dockerfile'));
  expect(keyOf(3000, null)).not.toBe(keyOf(3000, null, ['a']));
  expect(keyOf(3000, null, ['b'])).toBe(keyOf(3000, null, ['a']));
  expect(keyOf(3000, 'Dockerfile')).toBe(keyOf(3000, 'Dockerfile', ['a']));
});

test('a job is built anew where it begins to name its command, and not for another command', () => {
  const keyOf = (schedule: object, docker: object = {}) => {
    const source = {
      docker: { dockerfile_path: null, dockerfile_raw: null, docker_target_build_stage: null, ...docker },
    };
    const spec = { git_repository: git, source, schedule };
    const service = { serviceId: 'a', name: 'a', kind: 'JOB', spec, variables: [], advancedSettings: {} };
    return jobDeployment.plan(service as unknown as ServiceSnapshot<JobSpec>, 'DEPLOY', {}, null, []).buildKey;
  };
  const none = { arguments: [] };
  const [a, b] = [{ arguments: ['a'] }, { arguments: [], entrypoint: 'b' }];
  const named = keyOf({ cronjob: { ...a, timezone: 'Etc/UTC', scheduled_at: '@daily' } });
  expect(keyOf({ on_start: b })).toBe(named);
  expect(keyOf({ on_start: b, on_stop: none })).not.toBe(named);
  expect(keyOf({ on_start: none })).not.toBe(keyOf({ on_start: none, on_stop: none }));
  for (const docker of [{ dockerfile_path: 'Dockerfile' }, { dockerfile_raw: 'FROM a' }])
    expect(keyOf({ on_start: none }, docker)).toBe(keyOf({ on_start: a }, docker));
});
