import { expect, test } from 'vitest';
import { parseDockerfile } from '#kernel/parsing/dockerfile.ts';
import { cutAt, declareArguments, pairs, stageIndex, stagesOf } from '#runtimes/host/build/dockerfile.ts';
import { parseDuration, parseHealth } from '#runtimes/host/build/health.ts';
import { expandWord, splitWords } from '#kernel/parsing/dockerfile-words.ts';
import { ignoreFilter, segmentPattern } from '#runtimes/host/view/patterns.ts';

const VARIABLES: Record<string, string> = { A: 'one two', EMPTY: '' };
const lookup = (name: string) => VARIABLES[name];

test.each([
  ['plain words', ['plain', 'words']],
  ['"a b" c\\ d \'$A\'', ['a b', 'c d', '$A']],
  ['$A ${A}x "${A}"', ['one two', 'one twox', 'one two']],
  ['${B:-other} ${EMPTY:-other} ${EMPTY-other} ${A:+set} ${B:+set}', ['other', 'other', '', 'set', '']],
  ['${B:-$A}', ['one two']],
  ['a"b"\'c\'d', ['abcd']],
  ['\\$A "\\$A" $', ['$A', '$A', '$']],
  ['""', ['']],
  ['', []],
])('words of %j', (text, words) => {
  expect(splitWords(text, lookup)).toEqual(words);
});

test('a variable that must be set and is not is an error with its text', () => {
  expect(() => expandWord('${B:?give me B}', lookup)).toThrow('B: give me B');
});

const parse = (text: string, given: Record<string, string> = {}) => stagesOf(parseDockerfile(text), given);
const only = (text: string) => parse(`FROM x\n${text}`).stages[0]!.instructions[0]!;

test('continued lines are joined, comments and empty lines between them left out', () => {
  expect(only('RUN one \\\n  # a comment\n\n  --flag \\\n two').text).toBe('one   --flag  two');
});

test('an escape directive replaces the backslash', () => {
  const file = parse('# escape=`\nFROM x\nRUN one `\n two');
  expect(file.stages[0]!.instructions[0]!.text).toBe('one  two');
  expect(file.escape).toBe('`');
});

test('exec forms keep their strings as they are, and what is not one is text', () => {
  expect(only('CMD ["node", "a b.js", "--x=\\"1\\""]').json).toEqual(['node', 'a b.js', '--x="1"']);
  expect(only('CMD [ -f x ]').json).toBeNull();
});

test('flags are read with all their values', () => {
  expect(only('COPY --from=build --chown=1:1 a b').flags).toEqual({ from: ['build'], chown: ['1:1'] });
  expect(only('RUN --mount=type=cache,target=/a --mount=type=tmpfs,target=/b ls').flags['mount']).toHaveLength(2);
});

test('here-documents come with their content, quoted names literally', () => {
  const { heredocs, text } = only('COPY <<a.txt <<"b.txt" /app/\none $A\na.txt\ntwo\nb.txt');
  expect(text).toBe('<<a.txt <<"b.txt" /app/');
  expect(heredocs).toEqual([
    { name: 'a.txt', content: 'one $A\n', literal: false },
    { name: 'b.txt', content: 'two\n', literal: true },
  ]);
});

test('stages have names without regard to case, numbers, and bases from arguments', () => {
  const { stages } = parse('ARG TAG=1\nFROM node:$TAG AS Build\nFROM build', { TAG: '2' });
  expect(stages.map((stage) => [stage.name, stage.base])).toEqual([
    ['build', 'node:2'],
    [null, 'build'],
  ]);
  expect(stageIndex(stages, 'BUILD')).toBe(0);
  expect(stageIndex(stages, '1')).toBe(1);
  expect(stageIndex(stages, '2')).toBe(-1);
});

test.each([
  ['', 'no FROM'],
  ['RUN ls\nFROM x', 'line 1: RUN stands before'],
  ['FROM x\nBOGUS y', 'line 2: BOGUS is not an instruction'],
  ['FROM a b', 'line 1: FROM is written'],
])('%j is refused with its place', (text, message) => {
  expect(() => parse(text)).toThrow(message);
});

test('arguments: what is given wins, then what is written, then the one before the first FROM', () => {
  const variables: Record<string, string | undefined> = {};
  declareArguments(only('ARG A=written'), variables, { A: 'given' }, {}, '\\');
  declareArguments(only('ARG B=written C D'), variables, {}, { C: 'global' }, '\\');
  expect(variables).toEqual({ A: 'given', B: 'written', C: 'global', D: undefined });
});

test('both forms of ENV', () => {
  expect(pairs(only('ENV A=1 B="2 3" C=$A'), lookup, '\\')).toEqual([
    ['A', '1'],
    ['B', '2 3'],
    ['C', 'one two'],
  ]);
  expect(pairs(only('ENV KEY  some   value'), lookup, '\\')).toEqual([['KEY', 'some   value']]);
  expect(() => pairs(only('ENV A=1 B'), lookup, '\\')).toThrow('"B" has no "="');
  expect(cutAt('a=b=c', '=')).toEqual(['a', 'b=c']);
});

test('health checks with their times', () => {
  expect(parseHealth(only('HEALTHCHECK --timeout=3s --retries=5 CMD ["true"]'), [])).toMatchObject({
    check: { type: 'exec', command: ['true'] },
    timeoutSeconds: 3,
    failureThreshold: 5,
  });
  expect(parseHealth(only('HEALTHCHECK CMD curl localhost'), ['sh', '-c'])).toMatchObject({
    check: { command: ['sh', '-c', 'curl localhost'] },
  });
  expect(parseHealth(only('HEALTHCHECK NONE'), [])).toBeNull();
  expect(parseDuration('1m30s')).toBe(90);
  expect(parseDuration('250ms')).toBe(0.25);
  expect(() => parseDuration('soon')).toThrow('"soon" is not a duration');
});

test.each([
  ['*.txt', 'a.txt', true],
  ['*.txt', '.txt', true],
  ['?.txt', 'ab.txt', false],
  ['[a-c]x', 'bx', true],
  ['[^a]x', 'bx', true],
  ['[^a]x', 'ax', false],
  ['a\\*', 'a*', true],
  ['a\\*', 'ab', false],
  ['a.b', 'axb', false],
])('%s matches %s: %s', (pattern, name, matches) => {
  expect(segmentPattern(pattern).test(name)).toBe(matches);
});

test('.dockerignore: the last line that matches decides, folders take what is in them along', () => {
  const ignored = ignoreFilter([
    '# comment',
    '',
    'node_modules',
    '/secret',
    '**/*.log',
    'docs/**',
    '!docs/keep.md',
    './a/',
  ]);
  const out = ['node_modules', 'node_modules/x/y', 'secret', 'x.log', 'deep/er/y.log', 'docs/a', 'docs/b/c', 'a/b'];
  const kept = ['src/node_modules', 'src/secret', 'docs/keep.md', 'x.logs', 'ab'];
  expect(out.filter((path) => !ignored(path))).toEqual([]);
  expect(kept.filter((path) => ignored(path))).toEqual([]);
});
