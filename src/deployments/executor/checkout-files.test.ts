import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { declaredVariables, readOf, writeOwn } from '#deployments/executor/checkout-files.ts';

let base: string;
let checkout: string;
beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'checkout-files-'));
  checkout = path.join(base, 'checkout');
  await mkdir(checkout);
});
afterEach(() => rm(base, { recursive: true }));

describe('a file of a checkout', () => {
  test('is read', async () => {
    await writeFile(path.join(checkout, 'Dockerfile'), 'FROM scratch\n');
    expect(await readOf(checkout, 'Dockerfile')).toBe('FROM scratch\n');
  });

  test.each(['/dev/zero', '../secret', '/proc/self/environ'])(
    'that links to %s outside is not read',
    async (target) => {
      await writeFile(path.join(base, 'secret'), 'of the program');
      await symlink(target, path.join(checkout, 'Dockerfile'));
      await expect(readOf(checkout, 'Dockerfile')).rejects.toThrow('There is no file Dockerfile in the repository.');
    },
  );

  test('that is a folder is not there', async () => {
    await mkdir(path.join(checkout, 'Dockerfile'));
    await expect(readOf(checkout, 'Dockerfile', 'Commit one.')).rejects.toThrow('Commit one.');
  });

  test('that is too large is refused before it is read', async () => {
    await writeFile(path.join(checkout, 'Dockerfile'), Buffer.alloc(1024 * 1024 + 1));
    await expect(readOf(checkout, 'Dockerfile')).rejects.toThrow('Dockerfile is larger than 1024 KiB.');
  });

  test('of ours takes the place of a link, and what that leads to stays as it is', async () => {
    await writeFile(path.join(base, 'secret'), 'of the program');
    await symlink('../secret', path.join(checkout, 'Dockerfile'));
    await writeOwn(checkout, 'Dockerfile', 'FROM scratch\n');
    expect(await readFile(path.join(base, 'secret'), 'utf8')).toBe('of the program');
    expect(await readOf(checkout, 'Dockerfile')).toBe('FROM scratch\n');
  });
});

describe('variables of a build', () => {
  const declared = (text: string, variables: Record<string, string>) =>
    declaredVariables(newId(), { name: 'Dockerfile', text }, variables);
  const argumentsIn = async (text: string, variables: Record<string, string>) =>
    (await declared(text, variables)).arguments;

  test('are secrets where a RUN mounts them by their name', async () => {
    const text = [
      'FROM scratch',
      'ARG PORT',
      'RUN --mount=type=secret,id=NPM_TOKEN,env=NPM_TOKEN --mount=type=cache,target=/c --mount=type=secret,id=NONE a',
      'RUN --mount=type=secret,required=true,target=/root/PIP_TOKEN --mount=id=OTHER,type=bind b',
      'COPY --mount=type=secret,id=COPIED c d',
      '# RUN --mount=type=secret,id=COMMENT e',
    ].join('\n');
    const names = ['PORT', 'NPM_TOKEN', 'PIP_TOKEN', 'OTHER', 'COPIED', 'COMMENT'];
    expect(await declared(text, Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual({
      arguments: { PORT: 'x' },
      secretMounts: { NPM_TOKEN: 'x', PIP_TOKEN: 'x' },
    });
  });

  test('are the variables that the Dockerfile declares, and no others', async () => {
    const text = 'ARG BASE=alpine\nFROM ${BASE}\n  arg PORT HOST=localhost\n# ARG COMMENT\nRUN echo ARG TEXT\n';
    const variables = { BASE: 'a', PORT: '80', HOST: 'h', COMMENT: 'c', TEXT: 't', OTHER: 'o' };
    expect(await argumentsIn(text, variables)).toEqual({ BASE: 'a', PORT: '80', HOST: 'h' });
  });

  test('are none that every object has', async () => {
    expect(await argumentsIn('FROM scratch\nARG constructor\nARG __proto__\n', {})).toEqual({});
  });

  test('of a Dockerfile of empty lines hold up nobody', async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 5);
    try {
      await argumentsIn(`FROM scratch\n${'\n'.repeat(200_000)}ARG PORT\n`, { PORT: '80' }).catch(() => undefined);
      await expect.poll(() => turns).toBeGreaterThan(0);
    } finally {
      clearInterval(timer);
    }
  });

  test('of a Dockerfile that is too large are refused with its name', async () => {
    await expect(argumentsIn('#'.repeat(257 * 1024), {})).rejects.toThrow('Dockerfile: it is larger than 256 KiB');
  });
});
