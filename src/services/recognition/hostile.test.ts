import { describe, expect, test } from 'vitest';
import { filesOfPaths, forApplication } from '#services/images/made-dockerfile.ts';
import { makeDockerfile } from '#services/recognition/index.ts';
import { LONGEST_BLOCK_MS, leastBlockedBy } from '#test/harness/blocking.ts';

const made = (files: Record<string, string>, changes: { rootPath?: string } = {}) =>
  makeDockerfile(filesOfPaths({ paths: Object.keys(files), read: async (file) => files[file] }), {
    ...forApplication(3000, false),
    owner: 'owner',
    rootPath: '/',
    variables: [],
    isMachine: false,
    ...changes,
  });

describe('a hostile repository', () => {
  const WEB = { 'apps/web/package.json': '{"name":"web","scripts":{"start":"node ."}}', 'package-lock.json': '{}' };
  const patterns = [
    '{a,b}'.repeat(20),
    `${'*'.repeat(40)}x`,
    '{1..99999999}',
    `${'*a'.repeat(40)}b`,
    '+(+(+(+(a))))b'.repeat(9),
  ];
  const py = (name: string) => `[project]\nname = "${name}"\n`;

  test.each(patterns)(
    'whose workspace has the pattern %s holds up nothing but itself',
    { timeout: 60_000 },
    async (pattern) => {
      const list = JSON.stringify([pattern]);
      const repositories: Record<string, string>[] = [
        { ...WEB, 'package.json': `{"workspaces":${list}}` },
        { ...WEB, 'package.json': `{"workspaces":["!${pattern}","apps/*"]}` },
        { ...WEB, 'package.json': '{}', 'pnpm-workspace.yaml': `packages: ${list}` },
        {
          'apps/web/pyproject.toml': py('web'),
          'uv.lock': '',
          'pyproject.toml': `${py('all')}[tool.uv.workspace]\nmembers = ${list}`,
        },
      ];
      for (const files of repositories) {
        const work = () =>
          made(files, { rootPath: '/apps/web' }).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
        expect(await leastBlockedBy(work, 1), Object.keys(files).join(' ')).toBeLessThan(LONGEST_BLOCK_MS);
      }
    },
  );

  const RUNS = [
    '*',
    '{a,b}',
    ' ',
    '\t',
    '\n',
    '(',
    '$',
    '${',
    '=',
    '=> ',
    '-',
    'a',
    '1',
    '../',
    "'",
    '"',
    '\\',
    ', ',
    'path ',
  ];
  // prettier-ignore
  const NAMES = [
    'package.json', '.npmrc', '.yarnrc.yml', 'Procfile', 'go.mod', 'go.work', 'requirements.txt', 'pip.conf', 'main.py', 'manage.py',
    '.python-version', 'pom.xml', 'composer.json', 'Gemfile', '.ruby-version', 'Cargo.toml', 'pyproject.toml', 'index.html',
  ];
  const BASES: Record<string, string>[] = [
    { 'package.json': '{"scripts":{"start":"node ."}}', 'package-lock.json': '{}' },
    { 'requirements.txt': 'fastapi\nuvicorn\n', 'main.py': 'app = FastAPI()\n' },
    { 'go.mod': 'module a\n\ngo 1.24\n', 'main.go': 'package main' },
    { Gemfile: "gem 'puma'\n", 'Gemfile.lock': '', 'config.ru': '' },
  ];

  test.each(NAMES)('whose %s is very long holds nothing up', { timeout: 60_000 }, async (name) => {
    for (const base of BASES)
      for (const one of RUNS) {
        const files = { ...base, [name]: `${base[name] ?? ''}${one.repeat(50_000 / one.length)}x` };
        const work = () => made(files).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
        expect(await leastBlockedBy(work, 4), `${JSON.stringify(one)} ${Object.keys(base).join(' ')}`).toBeLessThan(
          LONGEST_BLOCK_MS,
        );
      }
  });
});
