import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, test } from 'vitest';
import { commandLines } from '#runtimes/host/testing.ts';
import { makeFolder } from '#test/harness/kubernetes/namespaces.ts';

const FIXTURE = path.join(import.meta.dirname, 'namespaces.fixture.ts');

/** Folders of control groups with a cluster's name, in every hierarchy. */
const groupsOf = (folder: string): string[] =>
  readdirSync('/sys/fs/cgroup', { withFileTypes: true })
    .flatMap((entry) => [
      `/sys/fs/cgroup/${path.basename(folder)}`,
      `/sys/fs/cgroup/${entry.name}/${path.basename(folder)}`,
    ])
    .filter((group) => existsSync(group));

const processesOf = (folder: string): string[] => commandLines().filter((line) => line.includes(folder));

test.runIf(inject('kubernetes').directory !== null)(
  'of a killed run nothing is left once the next one has started',
  async () => {
    const run = spawn(process.execPath, [FIXTURE], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(run.stdout, 'data')) as [Buffer];
    const { folder, link } = JSON.parse(String(line)) as { folder: string; link: string };
    expect(processesOf(folder)).toHaveLength(3);
    expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain(folder);
    const [group] = groupsOf(folder);
    mkdirSync(`${group}/pod`);
    const ended = once(run, 'exit');
    run.kill('SIGKILL');
    await ended;
    await expect.poll(() => processesOf(folder)).toEqual([]);
    await expect.poll(() => existsSync(`/sys/class/net/${link}`)).toBe(false);
    const next = await makeFolder();
    rmSync(next, { recursive: true });
    expect(existsSync(folder)).toBe(false);
    expect(groupsOf(folder)).toEqual([]);
  },
);
