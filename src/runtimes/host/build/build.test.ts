import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newBuild, newContext } from '#runtimes/contract/fixture.ts';
import { commandLines, TestHost, tryMachine } from '#runtimes/host/testing.ts';

const { namespaces } = await tryMachine();

describe.each([
  { name: 'in namespaces', works: namespaces, options: {} },
  { name: 'in plain folders', works: true, options: { mode: 'plain' as const } },
])('a build $name', ({ works, options }) => {
  describe.skipIf(!works)('works', () => {
    let host: TestHost;
    beforeAll(async () => {
      host = await TestHost.open(options);
    });
    afterAll(() => host.close());

    /** Builds with a last RUN that prints; returns its output. */
    async function printed(files: Record<string, string>, changes = {}): Promise<string[]> {
      host.write(files);
      const { log } = await host.build(changes);
      return log.split('\n').filter((line) => line.startsWith('> '));
    }

    test('accounts of workloads list no images, also where the folder was there before', async () => {
      const folders = [join(host.dataDir, 'images'), join(host.dataDir, 'images', host.identity().serviceId)];
      for (const folder of folders) {
        mkdirSync(folder, { recursive: true });
        chmodSync(folder, 0o755);
      }
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nCMD ["true"]' });
      await host.build({ identity: host.identity({ serviceId: basename(folders[1]!) }) });
      expect(folders.map((folder) => statSync(folder).mode & 0o777)).toEqual([0o711, 0o711]);
    });

    test('COPY copies folders, patterns, names and modes as written', async () => {
      host.write({
        'a.txt': 'a',
        'b.txt': 'b',
        'folder/deep/c.txt': 'c',
        'with blank.txt': 'blank',
        Dockerfile: `FROM x
WORKDIR /app
COPY *.txt texts/
COPY folder named
COPY a.txt renamed.txt
COPY ["with blank.txt", "folder/deep", "json/"]
COPY --chmod=640 b.txt mode.txt
COPY <<EOF inline.txt
inline
EOF
RUN find . -type f | sort | sed 's/^/> /'; stat -c '> %a' mode.txt; cat inline.txt | sed 's/^/> /'`,
      });
      const { log } = await host.build();
      expect(log.split('\n').filter((line) => line.startsWith('> '))).toEqual([
        '> ./inline.txt',
        '> ./json/c.txt',
        '> ./json/with blank.txt',
        '> ./mode.txt',
        '> ./named/deep/c.txt',
        '> ./renamed.txt',
        '> ./texts/a.txt',
        '> ./texts/b.txt',
        '> ./texts/with blank.txt',
        '> 640',
        '> inline',
      ]);
    });

    test('a secret is a variable of the step that mounts it, and in nothing that is kept', async () => {
      const value = 'token-3141';
      host.write({
        Dockerfile: `FROM x
WORKDIR /app
RUN --mount=type=secret,id=TOKEN,env=NPM_TOKEN --mount=type=secret,id=NONE,env=NONE printf %s "$NPM_TOKEN" | wc -c | sed 's/^/> /'; env | grep -c ^NONE | sed 's/^/> /'
RUN env > variables; grep -c NPM_TOKEN variables | sed 's/^/> /'
CMD ["true"]`,
      });
      const { log } = await host.build({ secretMounts: { TOKEN: value } });
      const lines = log.split('\n').filter((line) => line.startsWith('> '));
      expect(lines.map((line) => line.replaceAll(/[> ]/g, ''))).toEqual([String(value.length), '0', '0']);
      const kept = readdirSync(join(host.dataDir, 'images'), { recursive: true, withFileTypes: true });
      const texts = kept
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
      expect(texts.length).toBeGreaterThan(1);
      expect([...texts, log].filter((text) => text.includes(value))).toEqual([]);
    });

    test('a secret that is required and not there, or that would be a file, fails the build and says what to do', async () => {
      const build = (mount: string) => {
        host.write({ Dockerfile: `FROM x\nWORKDIR /app\nRUN --mount=type=secret,id=TOKEN${mount} true\n` });
        return host.build();
      };
      await expect(build(',env=TOKEN,required=true')).rejects.toThrow('The secret TOKEN is required');
      await expect(build(',id=constructor,env=TOKEN,required=true')).rejects.toThrow(
        'The secret constructor is required',
      );
      await expect(build('')).rejects.toThrow('add env=TOKEN, which makes a variable of the command');
    });

    test('a folder of PATH below WORKDIR is one of the image, for later steps', async () => {
      const files = { told: '#!/bin/sh\necho "> told"\n' };
      const dockerfile = 'FROM x\nWORKDIR /app\nCOPY --chmod=755 told bin/\nENV PATH=/app/bin:$PATH\nRUN told\n';
      expect(await printed({ ...files, Dockerfile: dockerfile })).toEqual(['> told']);
    });

    test('.dockerignore leaves out what it names, for folders and for single files', async () => {
      const files = {
        '.dockerignore': 'secret\n*.log\nkept/*\n!kept/yes',
        secret: 's',
        'x.log': 'x',
        'kept/yes': 'y',
        'kept/no': 'n',
        Dockerfile: "FROM x\nWORKDIR /app\nCOPY . .\nRUN find . -type f | sort | sed 's/^/> /'",
      };
      expect(await printed(files)).toEqual(['> ./.dockerignore', '> ./Dockerfile', '> ./kept/yes']);
      host.write({ ...files, Dockerfile: 'FROM x\nWORKDIR /app\nCOPY secret .' });
      expect(await host.buildError()).toMatch(/line 3: COPY: "secret" is not in the build context, or \.dockerignore/);
    });

    test('stages: only those that the target needs, files of one in another, configuration inherited', async () => {
      const Dockerfile = `FROM x AS base
WORKDIR /app
ENV FROM_BASE=yes
FROM base AS made
RUN echo made > made.txt
FROM base AS unneeded
RUN exit 1
FROM base AS final
COPY --from=made /app/made.txt copied.txt
RUN echo "> $FROM_BASE $(cat copied.txt)"
FROM final
RUN echo "> last"`;
      expect(await printed({ Dockerfile }, { targetStage: 'final' })).toEqual(['> yes made']);
      expect(await printed({ Dockerfile })).toEqual(['> yes made', '> last']);
      expect(await host.buildError({ targetStage: 'nothing' })).toBe('The Dockerfile has no stage "nothing".');
    });

    test('arguments and variables reach RUN, the shell can be changed, failures carry line and output', async () => {
      const Dockerfile = `ARG GLOBAL=g
FROM x
WORKDIR /app
ARG GLOBAL
ARG GIVEN=default
ENV BOTH="$GIVEN and $GLOBAL"
RUN echo "> $BOTH"
SHELL ["/bin/sh", "-ec"]
RUN <<EOF
echo "> here $GIVEN"
EOF
RUN ["sh", "-c", "echo \\"> exec $0\\"", "form"]`;
      const lines = await printed({ Dockerfile }, { arguments: { GIVEN: 'given' } });
      expect(lines).toEqual(['> given and g', '> here given', '> exec form']);
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN echo reason >&2; exit 7' });
      expect(await host.buildError()).toBe('Dockerfile line 3: RUN: It ended with status 7: reason');
      host.write({ Dockerfile: `FROM x\nWORKDIR /app\nRUN echo reason; printf '\\033[0m\\033[0m' >&2; exit 7` });
      expect(await host.buildError(), 'colours alone').toBe('Dockerfile line 3: RUN: It ended with status 7: reason');
      const output = [
        'npm error code E',
        'npm error Missing script: "build"',
        'npm error',
        'npm error See',
        'npm error   npm run',
      ];
      host.write({
        Dockerfile: `FROM x\nWORKDIR /app\nRUN printf '%s\\n' ${output.map((line) => `'${line}'`).join(' ')} >&2; exit 1`,
      });
      expect(await host.buildError()).toBe(
        `Dockerfile line 3: RUN: It ended with status 1: ${[output[1], ...output.slice(2)].join('\n')}`,
      );
    });

    test('nothing outside of the repository can be copied or named', async () => {
      writeFileSync(join(host.directory, 'outside.txt'), 'secret');
      const link = (target: string, path: string) => symlinkSync(target, join(host.repository, path));
      const copy = async (source: string) => {
        host.write({ Dockerfile: `FROM x\nWORKDIR /app\nCOPY ${source} there`, 'sub/inside.txt': 'i' });
        link(join(host.directory, 'outside.txt'), 'link');
        link('../outside.txt', 'relative');
        link(host.directory, 'folder');
        return host.buildError();
      };
      expect(await copy('../outside.txt')).toContain('"../outside.txt" leads out of the repository');
      expect(await copy('sub/../../outside.txt')).toContain('leads out of the repository');
      expect(await copy('link')).toContain('"link" leads out of the repository');
      expect(await copy('relative')).toContain('"relative" leads out of the repository');
      expect(await copy('folder/outside.txt')).toContain('leads out of the repository');
      expect(await copy('folder/*.txt')).toContain('"folder" leads out of the repository');
      expect(await copy('missing')).toContain('"missing" is not in the build context');
      expect(await host.buildError({ rootPath: '../' })).toContain('"../" leads out of the repository');
      expect(await host.buildError({ rootPath: 'folder' })).toContain('"folder" leads out of the repository');
      expect(await host.buildError({ dockerfilePath: 'link' })).toContain('"link" leads out of the repository');
    });

    test('a link inside of a copied folder stays a link, its target is not read', async () => {
      host.write({
        Dockerfile: 'FROM x\nWORKDIR /app\nCOPY tree tree\nRUN readlink tree/link | sed "s/^/> /"',
        'tree/x': '',
      });
      symlinkSync('/etc/hostname', join(host.repository, 'tree', 'link'));
      const { log } = await host.build();
      expect(log).toContain('> /etc/hostname');
    });

    test('a link that a RUN made never leads a COPY out of the tree', async () => {
      const target = join(host.directory, 'target');
      mkdirSync(target);
      host.write({
        Dockerfile: `FROM x\nWORKDIR /app\nRUN ln -s ${target} out\nCOPY file out/file\nRUN cat out/file || true`,
        file: 'x',
      });
      await host.build();
      expect(existsSync(join(target, 'file'))).toBe(false);
    });

    test('what has no meaning here is refused by name or said', async () => {
      const error = (line: string) => {
        host.write({ Dockerfile: `FROM x\nWORKDIR /app\n${line}`, 'a.tar.gz': '' });
        return host.buildError();
      };
      expect(await error('COPY --from=nginx:1 /etc/nginx /app/')).toContain('--from=nginx:1 is no earlier stage');
      expect(await error('ADD https://example.com/x /app/')).toContain('download it with RUN');
      expect(await error('ADD a.tar.gz /app/')).toContain('unpack it with RUN');
      expect(await error('RUN --mount=type=ssh ls')).toContain('--mount=type=ssh is not there');
      expect(await error('COPY --parents a b')).toContain('--parents is not there');
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nUSER node\nVOLUME /app/data' });
      const { log } = await host.build();
      expect(log).toMatch(/FROM x: this machine itself/);
      expect(log).toMatch(/USER node: instances have an account of their own/);
    });

    test('a build that takes too long is ended with everything that it started', async () => {
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN sleep 1234.5 & sleep 1234.5' });
      expect(await host.buildError({ timeoutSeconds: 1 })).toBe('The build did not end within 1 s.');
      expect(commandLines().filter((line) => line.includes('1234.5'))).toEqual([]);
    });

    test('a build that takes more disk than it may is ended, and leaves nothing', async () => {
      const runtime = await host.reopen({ ...options, buildDisk: { mostBytes: 4 << 20, reservedBytes: 0 } });
      const identity = host.identity();
      const build = () => runtime.build!(newBuild(identity, host.repository), newContext());
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN dd if=/dev/zero of=big bs=1M count=5 && sleep 1234.6' });
      await expect(build()).rejects.toThrow('The build takes more than the 4 MiB of disk that the operator allows.');
      expect(commandLines().filter((line) => line.includes('1234.6'))).toEqual([]);
      expect(readdirSync(join(host.dataDir, 'images', identity.serviceId))).toEqual([]);
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN dd if=/dev/zero of=big bs=1M count=2' });
      expect((await build()).cached).toBe(false);
      await runtime.close();
    });

    test('a cancelled build is ended and leaves nothing', async () => {
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nRUN sleep 2345.6' });
      const identity = host.identity();
      const abort = new AbortController();
      const context = newContext(abort.signal);
      const building = host.runtime.build!(newBuild(identity, host.repository), context);
      setTimeout(() => abort.abort(new Error('cancelled')), 500);
      await expect(building).rejects.toMatchObject({ code: 'aborted' });
      expect(commandLines().filter((line) => line.includes('2345.6'))).toEqual([]);
      await host.runtime.remove(identity, null, newContext());
      expect(existsSync(join(host.dataDir, 'images', identity.serviceId))).toBe(false);
    });

    test('the images that are named are removed, others stay, and one that runs is refused', async () => {
      host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nCMD ["sleep", "1000"]' });
      const identity = host.identity();
      const [first, second, third] = [
        await host.build({ identity, cacheKey: 'one' }),
        await host.build({ identity, cacheKey: 'two' }),
        await host.build({ identity, cacheKey: 'three' }),
      ];
      await host.apply(host.spec(third.image, { identity, ports: [], routes: [] }));
      await host.runtime.removeImages!(identity, [first.image]);
      await expect(host.runtime.removeImages!(identity, [third.image])).rejects.toThrow('in use');
      expect((await host.build({ identity, cacheKey: 'one' })).cached).toBe(false);
      expect((await host.build({ identity, cacheKey: 'two' })).cached).toBe(true);
      expect((await host.build({ identity, cacheKey: 'three' })).cached).toBe(true);
      expect(first.image).not.toBe(second.image);
    });
  });
});

describe.skipIf(!namespaces)('in namespaces', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await TestHost.open();
  });
  afterAll(() => host.close());

  test('a RUN changes a private copy: the machine stays as it is, the next instruction sees the change', async () => {
    host.write({
      Dockerfile: `FROM x
RUN rm -rf /usr/bin/env /var/lib/apt/lists && echo mine > /usr/local/marker && mkdir /new && echo top > /new/file
RUN test ! -e /usr/bin/env && cat /usr/local/marker /new/file | sed 's/^/> /'`,
    });
    const { log } = await host.build();
    expect(log).toContain('> mine\n> top');
    expect(existsSync('/usr/bin/env')).toBe(true);
    expect(existsSync('/usr/local/marker')).toBe(false);
    expect(existsSync('/new')).toBe(false);
  });

  test('files of one stage are copied from anywhere in it, through its own links', async () => {
    host.write({
      Dockerfile: `FROM x AS made
RUN mkdir -p /opt/real && echo one > /opt/real/one && ln -s /opt/real /opt/link && ln -s /etc/hostname /opt/real/dangling
FROM x
COPY --from=made /opt/link /copied
COPY --from=made /opt/rea*/o* /pattern/
RUN cat /copied/one /pattern/one | sed 's/^/> /'; readlink /copied/dangling | sed 's/^/> /'; test ! -e /opt/real`,
    });
    expect((await host.build()).log).toContain('> one\n> one\n> /etc/hostname');
  });
});

describe('in plain folders', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await TestHost.open({ mode: 'plain' });
  });
  afterAll(() => host.close());

  test('absolute paths below a WORKDIR mean the tree, others are refused by name', async () => {
    host.write({
      Dockerfile: 'FROM x\nWORKDIR /app\nRUN echo mine > /app/file && cat /app/file | sed "s/^/> /"',
      x: '',
    });
    expect((await host.build()).log).toContain('> mine');
    expect(existsSync('/app/file')).toBe(false);
    host.write({ Dockerfile: 'FROM x\nCOPY x /etc/x', x: '' });
    expect(await host.buildError()).toMatch(/COPY needs \/etc\/x: without namespaces only paths below a WORKDIR/);
    expect(existsSync('/etc/x')).toBe(false);
  });

  test('the log says that there are no namespaces', async () => {
    host.write({ Dockerfile: 'FROM node:24-alpine\nWORKDIR /app' });
    expect((await host.build()).log).toContain(
      'FROM node:24-alpine: this machine itself, in plain folders (it was chosen)',
    );
  });
});
