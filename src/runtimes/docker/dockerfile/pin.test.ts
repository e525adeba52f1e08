import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RuntimeError } from '#runtimes/runtime.ts';
import { pinDockerfile, type PinOptions } from './pin.ts';
import { scanDockerfile, triggerOf, type Instruction } from '#kernel/parsing/dockerfile-scan.ts';

const VICTIM = 'quarterdeck/0b7f9dd4-0000-4000-8000-000000000000:key';

/** Characters of an image's name: the platform asks no registry for others. */
const NAME = /^[\w.:@/-]+$/;

/** Pins a Dockerfile. The registry has every image except those of the engine; ONBUILD of `triggering` is as given. */
async function pin(lines: string | string[], changes: Partial<PinOptions> = {}, onBuild: string[] = []) {
  const log: string[] = [];
  const hosts: string[] = [];
  const asked: string[] = [];
  const text = await pinDockerfile(
    [lines].flat().join('\n'),
    {
      organizationId: 'tests',
      variables: {},
      separatesCaches: true,
      hereDocuments: true,
      platform: 'linux/amd64',
      ...changes,
    },
    {
      log: (line) => void log.push(line),
      resolveImage: async (name, platform) => {
        asked.push(`${name} ${platform}`);
        if (!NAME.test(name)) throw new Error('must be the name of an image in a registry.');
        if (name.startsWith('quarterdeck/')) throw new Error('the registry docker.io does not have it.');
        return {
          reference: `${name.split(/[:@]/)[0]}@sha256:pinned`,
          onBuild: name === 'triggering' ? onBuild : [],
          registry: null,
        };
      },
      checkHost: async (host) => {
        hosts.push(host);
        if (/^(127|10)\./.test(host)) throw new Error(`${host} is a private address.`);
      },
    },
  );
  return { text, log, hosts, asked, lines: text.split('\n').filter((line) => !line.startsWith('ARG QUARTERDECK')) };
}

const refusal = (lines: string | string[], changes?: Partial<PinOptions>, onBuild?: string[]): Promise<string> =>
  pin(lines, changes, onBuild).then(
    ({ text }) => `let through: ${text}`,
    (error: unknown) => {
      expect(error).toBeInstanceOf(RuntimeError);
      return (error as Error).message;
    },
  );

describe('a Dockerfile', () => {
  test('names every image by the digest that a registry answered', async () => {
    const { lines } = await pin([
      'FROM node:24 AS build',
      'RUN --mount=type=bind,from=tools:1,target=/tools /tools/run',
      'FROM nginx',
      'COPY --from=build --chown=1:1 /app /app',
      'COPY --chown=1:1 --from=certs:2 /etc/ssl /etc/ssl',
      'COPY --from=0 /x /x',
      'FROM build',
      'FROM scratch',
    ]);
    expect(lines).toEqual([
      'FROM node@sha256:pinned AS build',
      'RUN --mount=type=bind,from=tools@sha256:pinned,target=/tools /tools/run',
      'FROM nginx@sha256:pinned',
      'COPY --from=build --chown=1:1 /app /app',
      'COPY --chown=1:1 --from=certs@sha256:pinned /etc/ssl /etc/ssl',
      'COPY --from=0 /x /x',
      'FROM build',
      'FROM scratch',
    ]);
  });

  test('has the variables of FROM replaced by build arguments, else by defaults', async () => {
    const file = [
      'ARG BASE=node',
      'ARG TAG=22',
      'FROM --platform=$BUILDPLATFORM ${BASE}:${TAG}-alpine',
      'FROM ${OTHER:-debian}',
    ];
    const { asked } = await pin(file, { variables: { TAG: '24', BUILDPLATFORM: 'linux/arm64' } });
    expect(asked).toEqual(['node:24-alpine linux/arm64', 'debian linux/amd64']);
  });

  test('names a stage in plain text where a FROM spells it by variables', async () => {
    const file = ['ARG KIND=dev', 'FROM node AS stage-dev', 'FROM stage-${KIND} AS last', 'FROM "scratch"'];
    const { lines } = await pin(file);
    expect(lines.slice(2)).toEqual(['FROM stage-dev AS last', 'FROM scratch']);
  });

  test('gets an argument of the organization in every stage, so that layers of two have different keys', async () => {
    const { text } = await pin(['FROM node', 'RUN a', 'FROM \\', '  debian', 'RUN b']);
    expect(text.split('\n')).toEqual([
      'FROM node@sha256:pinned',
      'ARG QUARTERDECK_BUILD_SCOPE',
      'RUN a',
      'FROM \\',
      '  debian@sha256:pinned',
      'ARG QUARTERDECK_BUILD_SCOPE',
      'RUN b',
    ]);
  });

  test.each([
    ['# syntax=evil.example.com/frontend'],
    ['#syntax = evil.example.com/frontend'],
    ['# other=1', '# Syntax=evil.example.com/frontend'],
    ['#!/usr/bin/env docker', '# syntax=evil.example.com/frontend'],
  ])('is read by the builder’s own frontend only (%s)', async (...head) => {
    const { text, log } = await pin([...head, 'FROM node']);
    expect(text).not.toMatch(/syntax|evil/i);
    expect(log.join('\n')).toContain('evil.example.com/frontend is not followed');
  });

  test.each([['// syntax=evil.example.com/frontend'], ['{"syntax": "evil.example.com/frontend"}']])(
    'cannot name a frontend in another way (%s)',
    async (head) => {
      expect(await refusal([head, 'FROM node'])).toContain('is not an instruction');
    },
  );

  test('keeps its escape character', async () => {
    const { lines } = await pin(['# syntax=x', '# escape=`', 'FROM `', 'node', 'COPY C:\\ /']);
    expect(lines).toEqual(['# escape=`', '#', 'FROM `', 'node@sha256:pinned', 'COPY C:\\ /']);
  });
});

/** Lists an instruction and those that it holds behind ONBUILD. */
const withTrigger = (instruction: Instruction): Instruction[] =>
  instruction.keyword === 'ONBUILD' ? [instruction, ...withTrigger(triggerOf(instruction))] : [instruction];

describe('an image that lies on the engine alone is refused', () => {
  test.each([
    [[`FROM ${VICTIM}`]],
    [['FROM node', `COPY --from=${VICTIM} / /`]],
    [['FROM node', `COPY --fr"om"=${VICTIM} / /`]],
    [['FROM node', `COPY --from="${VICTIM}" / /`]],
    [['FROM node', `COPY --chown=0:0 \\`, `  --from=${VICTIM} / /`]],
    [['FROM node', `COPY \\`, '# comment', `  --from=${VICTIM} / /`]],
    [['FROM node', `copy --FROM=${VICTIM} / /`]],
    [['FROM node', `ADD --from=${VICTIM} / /`]],
    [['FROM node', `RUN --mount=from=${VICTIM},target=/x cat /x`]],
    [['FROM node', `RUN --mount=type=cache,FROM=${VICTIM},target=/x cat /x`]],
    [['FROM node', `RUN --mount=type=bind,"from=${VICTIM}",target=/x cat /x`]],
    [['FROM node', `ONBUILD COPY --from=${VICTIM} / /`]],
    [['FROM node', `ONBUILD --from=${VICTIM} FROM node`]],
    [['FROM node', `ONBUILD --mount=from=${VICTIM} RUN true`]],
    [['FROM node', `ONBUILD ONBUILD COPY --from=${VICTIM} / /`]],
    [['FROM node', `COPY --from ${VICTIM} / /`]],
    [['FROM node', `copy --FROM=from=${VICTIM}`]],
    [['ARG BASE=node', 'FROM ${BASE}', `ARG X=${VICTIM}`, 'COPY --from=$X / /']],
    [['FROM node AS one', `FROM \${UNDECLARED:-${VICTIM}}`]],
    [['FROM node AS one', `FROM \${UNDECLARED:+${VICTIM}}`]],
    [[`ARG X=\${UNDECLARED:-${VICTIM}}`, 'FROM node AS one', 'FROM $X']],
    [[`ARG BASE=${VICTIM}`, 'FROM $BASE']],
    [[`ARG A=quarterdeck/`, `FROM \${A}${VICTIM.slice('quarterdeck/'.length)}`]],
    [['FROM node', 'RUN true \\', '# comment', `COPY --from=${VICTIM} / /`, 'RUN x']],
    [['FROM node', 'RUN true \\\\', `COPY --from=${VICTIM} / /`]],
    [['FROM node', 'RUN echo " <<X "', `COPY --from=${VICTIM} / /`, 'X']],
    [['FROM node', 'RUN cat <<X', 'text', 'X', `COPY --from=${VICTIM} / /`]],
    [['FROM node', `COPY\u00a0--from=${VICTIM} / /`]],
    [['FROM node', `COPY \u0085--from=${VICTIM} / /`]],
    [['FROM node', `COPY --chown=\u00e0--from=${VICTIM} / /`]],
    [['FROM node', `COPY --link --chown=1 --from=${VICTIM} / /`]],
    [['FROM node AS one', 'COPY --from=two / /', 'FROM node AS two']],
    [['FROM node', 'COPY --from=7 / /']],
    [[`FROM node AS a`, `COPY --from=a / /`]],
  ])('%j', async (lines) => {
    const message = await refusal(lines, { variables: { UNDECLARED: 'one' } });
    const lets = /let through: ([^]*)/.exec(message)?.[1];
    // A later stage, or the current one, is looked up in a registry, never on the engine.
    if (lets !== undefined) expect(lets).toMatch(/--from=(two|a)@sha256:pinned|^FROM one$/m);
    else expect(message).toMatch(/^Dockerfile line \d+: /);
  });

  test('inside of a here-document only where the builder knows none', async () => {
    const file = ['FROM node', 'RUN cat > $HOME/query <<EOF', 'FROM users', 'EOF', 'COPY . .'];
    expect((await pin(file)).lines.slice(1)).toEqual(file.slice(1));
    expect(await refusal(file, { hereDocuments: false })).toMatch(/line 3.*Docker Engine 23/);
  });

  test('whatever is around it', async () => {
    const piece = fc.constantFrom(
      'FROM node\n', 'RUN true', 'COPY ', '--from=', `--from=${VICTIM} `, '--mount=', 'from=', VICTIM, '<<X', '\nX\n', '\\\n', '\\', '\n',
      '#', '"', "'", ' ', '\t', '$', '${A:-', '}', ',', 'ONBUILD ', 'onbuild ', 'ADD ', 'copy ', 'CMD ', '--FROM=', '--from ', '`', '\u00a0', '\r', '# escape=`\n', 'AS a', '=', '[', ']',
    ); // prettier-ignore
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 25 }), async (pieces) => {
        const made = await pin(`FROM node\n${pieces.join('')}`).catch((error: unknown) => error);
        if (made instanceof Error) return; // Refused, or wrong for every builder.
        const { text } = made as { text: string };
        for (const { keyword, flags, rest } of scanDockerfile(text, true).instructions.flatMap(withTrigger)) {
          if (keyword === 'FROM') expect(rest).not.toContain('quarterdeck/');
          for (const flag of flags.filter((one) => /^--(from|mount)/i.test(one))) {
            expect(flag).not.toMatch(/(^--|[=,])from=quarterdeck/i);
            expect(flag).toMatch(keyword === 'COPY' ? /^--from=/i : keyword === 'RUN' ? /^--mount=/i : /^$/);
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});

test('an image whose ONBUILD reaches for another image, or out, is refused', async () => {
  const file = ['FROM triggering'];
  expect(await refusal(file, {}, [`COPY --from=${VICTIM} / /`])).toContain('ONBUILD COPY --from=');
  expect(await refusal(file, {}, [`RUN --mount=from=${VICTIM},target=/x cp /x /y`])).toContain('ONBUILD RUN');
  expect(await refusal(file, {}, ['ADD http://127.0.0.1:8081/metrics /x'])).toContain('ONBUILD ADD');
  expect(await refusal(file, {}, ['RUN --network=host curl x'])).toContain('--network=host');
  expect((await pin(file, {}, ['COPY package.json ./', 'RUN npm install'])).lines).toEqual([
    'FROM triggering@sha256:pinned',
  ]);
});

describe('an option that reaches outside is refused on instructions that do not have it', () => {
  const OWNERS = { from: 'COPY', mount: 'RUN', network: 'RUN', security: 'RUN', device: 'RUN' };
  const KEYWORDS = [
    'FROM', 'RUN', 'COPY', 'ADD', 'WORKDIR', 'ENV', 'ARG', 'EXPOSE', 'CMD', 'ENTRYPOINT', 'USER', 'LABEL', 'HEALTHCHECK', 'SHELL',
    'STOPSIGNAL', 'VOLUME', 'MAINTAINER', 'ONBUILD',
  ]; // prettier-ignore
  const misplaced = KEYWORDS.flatMap((keyword) =>
    Object.entries(OWNERS).flatMap(([option, owner]) => (owner === keyword ? [] : [{ keyword, option, owner }])),
  );
  const isTrigger = (keyword: string) => !['FROM', 'MAINTAINER', 'ONBUILD'].includes(keyword);

  test.each(misplaced)('--$option of $owner on $keyword', async ({ keyword, option, owner }) => {
    const message = `line 2: --${option} is an option of ${owner}, not of ${keyword}.`;
    const [first, ...others] = option;
    const options = [
      `--${option}=x`,
      `--${option.toUpperCase()}=x`,
      `--${option}`,
      `--chown=1 --${option}=x`,
      `--${first}\\${others.join('')}=x`,
      `--${first}"${others.join('')}"=x`,
      `--${first}'${others.join('')}=x'`,
      `\\\n  --${option}=x`,
      `\\\n# comment\n  --${option}=x`,
      `--${first}\\\n${others.join('')}=x`,
    ];
    for (const written of options)
      for (const before of ['', 'ONBUILD ', 'onBuild \\\n '].slice(0, isTrigger(keyword) ? 3 : 1))
        for (const name of [keyword, keyword.toLowerCase()])
          expect(await refusal(['FROM busybox', `${before}${name} ${written} RUN a b`])).toContain(message);
    expect(await refusal(['# escape=`', `${keyword} \`\n --${option}=x RUN a b`])).toContain(message);
  });

  test.each(misplaced.filter(({ keyword }) => isTrigger(keyword)))(
    '--$option of $owner on $keyword in the ONBUILD of an image',
    async ({ keyword, option, owner }) => {
      const trigger = `${keyword.toLowerCase()} --${option}=x a b`;
      const message = `--${option} is an option of ${owner}, not of ${keyword}.`;
      expect(await refusal('FROM triggering', {}, [trigger])).toContain(message);
    },
  );

  test.each([
    'ONBUILD COPY --from=busybox / /',
    'FROM busybox',
    'MAINTAINER me',
    'onbuild onbuild RUN --mount=from=x true',
  ])('ONBUILD %s is refused as builders refuse it', async (trigger) => {
    const keyword = /^\w+/.exec(trigger)![0].toUpperCase();
    expect(await refusal(['FROM busybox', `ONBUILD ${trigger}`])).toContain(`${keyword} is not allowed behind ONBUILD`);
  });

  test.each(['COPY --from busybox /a /b', 'RUN --mount from=busybox true', 'RUN --network host true'])(
    '%s: a value is never taken from the next word',
    async (line) => {
      const message = 'must have its value behind "="';
      expect(await refusal(['FROM busybox', line])).toContain(message);
      expect(await refusal(['FROM busybox', `ONBUILD ${line}`])).toContain(message);
    },
  );

  test('an argument that only looks like such an option is left alone', async () => {
    const file = [
      'FROM busybox@sha256:pinned',
      'RUN tool --from=x --network=host',
      'CMD tool --mount=x',
      'ENTRYPOINT ["--from=x"]',
      'ENV OPTIONS=--device=x',
      'HEALTHCHECK --interval=5s CMD tool --security=x',
      'ONBUILD CMD tool --from=x',
    ];
    expect((await pin(file)).lines).toEqual(file);
  });
});

describe('what no tenant may ask of a shared builder is refused', () => {
  test.each(['--network=host', '--security=insecure', '--device=vendor.com/gpu=all'])('RUN %s', async (option) => {
    expect(await refusal(['FROM node', `RUN ${option} true`])).toContain(
      `RUN ${option} is not allowed on a shared builder`,
    );
  });
  test('caches where the builder shares them with other organizations', async () => {
    const file = ['FROM node', 'RUN --mount=type=cache,target=/c true'];
    expect(await refusal(file, { separatesCaches: false })).toContain('would share the cache');
    expect((await pin(file)).lines[1]).toBe(file[1]);
  });
  test.each([
    ['ADD http://127.0.0.1:8081/metrics /x', 'ADD from 127.0.0.1'],
    ['ADD ["https://10.0.0.1/x", "/x"]', 'ADD from 10.0.0.1'],
    ['ADD git@10.0.0.1:team/x.git /x', 'ADD from 10.0.0.1'],
    ['ADD $URL /x', 'begins with a variable'],
    ['ADD h${X}tp://127.0.0.1/ /x', 'begins with a variable'],
    ['ADD http://${HOST}/ /x', 'without variables'],
    ['ADD http://example.com:$PORT/ /x', 'without variables'],
    ['ADD ${NONE:+./}http://127.0.0.1/ /x', 'begins with a variable'],
    ['ADD ${NONE#./}http://127.0.0.1/ /x', 'begins with a variable'],
    ['ADD ["${NONE:-\\"}http://127.0.0.1/", "/x"]', 'begins with a variable'],
    ['ADD h"tt"p://127.0.0.1/ /x', 'ADD from 127.0.0.1'],
    ["ADD './a b' 'http://127.0.0.1/' /x", 'ADD from 127.0.0.1'],
    ['ADD h\\ttp://127.0.0.1/ /x', 'must be a URL such as'],
    ['ADD ["\\"http\\"://127.0.0.1/", "/x"]', 'ADD from 127.0.0.1'],
    ['ADD ["h\\\\ttp://127.0.0.1/", "/x"]', 'must be a URL such as'],
    ['ADD ["http://127.0.0.1/", "/x"] more', 'must be a JSON array of strings'],
    ['ADD ["http://127.0.0.1/", "/x"', 'must be a JSON array of strings'],
    ['ADD http://127.0.0.1?@example.com/ /x', 'ADD from 127.0.0.1'],
    ['ADD http://127.0.0.1#@example.com/ /x', 'ADD from 127.0.0.1'],
    ['ADD http://example.com@10.0.0.1/ /x', 'ADD from 10.0.0.1'],
    ['ADD http://a@example.com@10.0.0.1/ /x', 'ADD from 10.0.0.1'],
    ['ADD http://exam%70le.com/ /x', 'is not the name of a host'],
    ['ADD 10.0.0.1:team/x.git /x', 'must be a URL such as'],
    ['ADD http:/$X /x', 'must be a URL such as'],
    ['ADD ftp://$X /x', 'without variables'],
    ['ADD file:///etc/passwd /x', 'is not the name of a host'],
    ['ADD http://１２７.0.0.1/ /x', 'is not the name of a host'],
    ['ADD <<EOF http://127.0.0.1/ /x/\ntext\nEOF', 'ADD from 127.0.0.1'],
    ['ADD --keep-git-dir=true "http"://127.0.0.1/x.git /x', 'ADD from 127.0.0.1'],
    ['ONBUILD ADD h"tt"p://127.0.0.1/ /x', 'ADD from 127.0.0.1'],
  ])('%s', async (line, reason) => {
    expect(await refusal(['FROM node', line])).toContain(reason);
  });
  test('ADD from a URL that only one of the two escape characters shows', async () => {
    const reason = 'must be a URL such as';
    expect(await refusal(['# escape=`', 'FROM node', 'ADD h`ttp://127.0.0.1/ /x'])).toContain(reason);
    expect(await refusal(['# escape=`', 'FROM node', 'ADD ["h`ttp://127.0.0.1/", "/x"]'])).toContain(reason);
    // Builders expand an image's trigger with the escape character of the file that names the image.
    expect(await refusal(['# escape=`', 'FROM triggering'], {}, ['ADD h`ttp://127.0.0.1/ /x'])).toContain(reason);
    expect(await refusal('FROM triggering', {}, ['# escape=`\nADD h\\ttp://127.0.0.1/ /x'])).toContain(reason);
  });
  test('ADD from a public host and of files is not', async () => {
    const { hosts } = await pin([
      'FROM node',
      'ADD https://example.com/$VERSION/x.tgz /x',
      'ADD ./$FILE app/$B.tar /x',
      'ADD ["a file.tar", "https://user@example.org:8443/a?b=c@d", "./$FILE", "/x"]',
      'ADD [ab].txt notes-[0-9]*.txt /x',
    ]);
    expect(new Set(hosts)).toEqual(new Set(['example.com', 'example.org']));
  });
});
