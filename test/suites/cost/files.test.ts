import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { LIMITS, type Format } from '#kernel/parsing/formats.ts';
import { ParserPool, Refusal } from '#kernel/parsing/pool.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';

/** Time limit of a parser in milliseconds, below the program's own limits: enough to show its cost. */
const MILLISECONDS = 1_500;

const lines = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join('\n');
const OPTIONS: Partial<Record<Format, unknown>> = {
  'terraform-content': { secrets: Array.from({ length: 200 }, (_, n) => `secret number ${n}`) },
  'terraform-answer': { secrets: [] },
  'json-shape': { shape: { values: [{ id: true, tags: [true] }] } },
  'argo-cd': { list: 'resources' },
  yaml: { maxAliasCount: 100, merge: true },
  manifest: { before: '' },
  'chart-object': { group: '/api/v1', resource: 'configmaps', namespace: 'qd-own' },
  'dockerfile-reach': { variables: {}, separatesCaches: true, hereDocuments: true },
};

/** Files that cost a parser the most, within the limits of size. */
const HOSTILE: [name: string, format: Format, text: string][] = [
  ['HCL of unfinished comments', 'hcl', '/* '.repeat(170_000)],
  ['HCL of blocks in blocks', 'hcl', 'a {\n'.repeat(100_000)],
  ['HCL of lists in lists', 'hcl', `x = ${'['.repeat(250_000)}`],
  ['HCL of templates in templates', 'hcl', `x = ${'"${'.repeat(100_000)}`],
  ['HCL of 40,000 attributes', 'hcl', lines(40_000, (n) => `a${n} = 1`)],
  ['HCL of one long sum', 'hcl', `x = ${'1+'.repeat(200_000)}1`],
  ['YAML of 30,000 keys', 'yaml', lines(30_000, (n) => `key${n}: 1`)],
  ['YAML of lists in lists', 'yaml', '['.repeat(500_000)],
  ['YAML of 250,000 short items', 'yaml', `[${'1,'.repeat(250_000)}1]`],
  [
    'YAML of aliases of aliases',
    'yaml',
    `a0: &a0 [x, x]\n${lines(40, (n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]`)}`,
  ],
  [
    'YAML of merged maps',
    'yaml',
    `a: &a {${lines(2_000, (n) => `k${n}: 1,`)}}\nb:\n${lines(90, () => '  - {<<: *a}')}`,
  ],
  ['YAML that holds itself', 'yaml', 'a: &a [*a]'],
  ['a Dockerfile of one continued line', 'dockerfile', `FROM a\nRUN ${'x \\\n'.repeat(60_000)}`],
  ['a Dockerfile of here-documents', 'dockerfile', `FROM a\nRUN ${'<<a '.repeat(60_000)}\na\n`],
  ['a Dockerfile of flags', 'dockerfile', `FROM a\nCOPY ${'--a=b '.repeat(40_000)} x y\n`],
  ['a Dockerfile of stages', 'dockerfile-facts', lines(15_000, (n) => `FROM a AS s${n}`)],
  ['a Dockerfile of arguments', 'dockerfile-facts', `ARG ${lines(30_000, (n) => `a${n}=\\`)}\nFROM a`],
  ['a Dockerfile of carriage returns', 'dockerfile-reach', `FROM a\nRUN ${'\r'.repeat(250_000)}x`],
  ['a Dockerfile with blanks in a directive', 'dockerfile-reach', `# syntax=a${' '.repeat(250_000)}b\nFROM a`],
  ['a Dockerfile of dashes behind a comment', 'dockerfile-reach', `FROM a\nRUN x \\\n#\nrun ${'-'.repeat(250_000)}`],
  ['a Dockerfile of here-documents without an end', 'dockerfile-reach', `FROM a\n${lines(20_000, () => 'RUN a <<b')}`],
  ['a Dockerfile of 20,000 stages', 'dockerfile-reach', lines(20_000, (n) => `FROM s${n}`)],
  [
    'a Dockerfile whose arguments double each other',
    'dockerfile-reach',
    `ARG a0=xxxxxxxx\n${lines(60, (n) => `ARG a${n + 1}=$a${n}$a${n}`)}\nFROM $a60`,
  ],
  ['JSON of lists in lists', 'json', '['.repeat(1_000_000)],
  ['JSON of 500,000 short items', 'json', `[${'1,'.repeat(500_000)}1]`],
  ['JSON that is written as YAML', 'json-to-yaml', `[${'[],'.repeat(250_000)}1]`],
  [
    'a state of 500,000 short items',
    'terraform-state',
    `{"version": 4, "serial": 1, "a": [${'[],'.repeat(500_000)}1]}`,
  ],
  [
    'a state of a million short items in an attribute',
    'terraform-content',
    `{"version":4,"serial":1,"resources":[{"instances":[{"attributes":{"a":[${'[],'.repeat(1_000_000)}1]}}]}]}`,
  ],
  [
    'a state of 500,000 outputs',
    'terraform-content',
    `{"version":4,"serial":1,"outputs":{${lines(500_000, (n) => `"o${n}":{"value":""},`)}"last":{"value":1}}}`,
  ],
  ['an answer of Terraform of lists in lists', 'terraform-answer', '['.repeat(2_000_000)],
  ['an answer of a git provider with 500,000 tags', 'json-shape', `{"values":[{"tags":[${'1,'.repeat(500_000)}1]}]}`],
  [
    'resources of an Argo CD that are Secrets',
    'argo-cd',
    JSON.stringify({
      items: Array.from({ length: 2_000 }, () => ({
        kind: 'Secret',
        liveState: `{"data":{${'"a":1,'.repeat(1_000)}"b":1}}`,
      })),
    }),
  ],
  ['an object of a chart with a million others in it', 'chart-object', `{"a":[${'{},'.repeat(1_000_000)}{}]}`],
  ['an object of a chart of lists in lists', 'chart-object', `{"a":${'['.repeat(2_000_000)}${']'.repeat(2_000_000)}}`],
  ['an object of a chart with a long name', 'chart-object', `{"metadata":{"name":"${'a'.repeat(4_000_000)}"}}`],
  ['a manifest of 50,000 objects', 'manifest', lines(50_000, (n) => `---\nkind: A\nmetadata: {name: a${n}}`)],
  ['an index of 100,000 charts', 'chart-index', `entries:\n${lines(100_000, (n) => `  c${n}: [{version: 1}]`)}`],
  [
    'an index of 19,000 charts',
    'chart-index',
    JSON.stringify({
      entries: Object.fromEntries(
        Array.from({ length: 19_000 }, (_, n) => [`c${n}`, [{ version: '1.0.0', urls: ['a.tgz'] }]]),
      ),
    }),
  ],
];

test.each(HOSTILE)(
  '%s holds up nobody for more than 50 ms, and is read or refused in time',
  async (_name, format, text) => {
    const pool = new ParserPool();
    const limits = { ...LIMITS[format], milliseconds: MILLISECONDS };
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limits.bytes);
    const read = async () => {
      const question = { format, text, options: OPTIONS[format] ?? null };
      const outcome = await pool.run(newId(), question, limits).catch((error: unknown) => error);
      if (outcome instanceof Error) expect(outcome).toBeInstanceOf(Refusal);
    };
    expect(await leastBlockedBy(read)).toBeLessThan(LONGEST_BLOCK_MS);
  },
  60_000,
);
