import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { publishFolder } from '#runtimes/host/publish-folder.ts';
import { makeSkeleton } from '#runtimes/host/skeleton.ts';
import { kindOf } from '#runtimes/host/view/root-path.ts';

let below: string;
beforeEach(() => {
  below = mkdtempSync(join(tmpdir(), 'skeleton-'));
});
afterEach(() => rmSync(below, { recursive: true }));

test('a second call returns the same folder and leaves it as it is', () => {
  const first = makeSkeleton(below, ['usr', 'etc'], null);
  const made = statSync(first);
  expect(makeSkeleton(below, ['usr', 'etc'], null)).toBe(first);
  expect(statSync(first)).toEqual(made);
  expect(readdirSync(below)).toHaveLength(1);
});

test('other folders of the machine make another skeleton beside the first, which stays', () => {
  const first = makeSkeleton(below, ['usr'], null);
  const second = makeSkeleton(below, ['usr', 'opt'], null);
  expect(readdirSync(second)).toContain('opt');
  expect(readdirSync(first)).not.toContain('opt');
});

test('it has mount points, the links of the machine, and the way to the folder that holds the data with its mode', () => {
  const made = makeSkeleton(below, ['usr', 'var/cache'], 'var/lib');
  expect(readdirSync(made)).toEqual(expect.arrayContaining(['usr', 'proc', 'sys', 'dev', 'run', 'tmp', 'var']));
  expect(statSync(join(made, 'tmp')).mode & 0o7777).toBe(0o1777);
  expect(statSync(join(made, 'var/lib')).mode).toBe(statSync('/var/lib').mode);
  expect(readdirSync(join(made, 'var')).sort()).toEqual(['cache', 'lib']);
  if (kindOf('/bin') === 'link') expect(readlinkSync(join(made, 'bin'))).toBe(readlinkSync('/bin'));
});

test('a folder that another process gave the name first is kept, and the own one removed', () => {
  const first = makeSkeleton(below, ['usr'], null);
  const made = statSync(first);
  const own = makeSkeleton(join(below, 'own'), ['opt'], null);
  publishFolder(own, first);
  expect(statSync(first)).toEqual(made);
  expect(readdirSync(join(below, 'own'))).toEqual([]);
});
