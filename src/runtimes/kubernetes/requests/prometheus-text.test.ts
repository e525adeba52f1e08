import { Readable } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LONGEST_BLOCK_MS, leastBlockedBy } from '#test/harness/blocking.ts';
import { parseSample, readSamples } from './prometheus-text.ts';

const read = async (parts: string[], prefixes = ['']) => {
  const found = [];
  for await (const sample of readSamples(Readable.from(parts.map((part) => Buffer.from(part))), prefixes))
    found.push(sample);
  return found;
};

test.each([
  ['up 1', { name: 'up', labels: {}, value: 1 }],
  ['a:b{c="d",e="f",} 1.5e+06 1700000000000', { name: 'a:b', labels: { c: 'd', e: 'f' }, value: 1_500_000 }],
  ['a{le="+Inf"} +Inf', { name: 'a', labels: { le: '+Inf' }, value: Infinity }],
  [String.raw`a{b="\\ \" \n }, c=\"1\""} 0`, { name: 'a', labels: { b: '\\ " \n }, c="1"' }, value: 0 }],
  ['a{__proto__="b"} 2', { name: 'a', labels: { ['__proto__']: 'b' }, value: 2 }],
])('a sample is read as it was written: %s', (line, { name, labels, value }) => {
  const sample = parseSample(line)!;
  expect([sample.name, sample.value]).toEqual([name, value]);
  expect([...sample.labels]).toEqual(Object.entries(labels));
});

test.each([
  '',
  '# HELP a b',
  'a',
  'a{b="c} 1',
  'a{b=c} 1',
  'a{b="c" d="e"} 1',
  'a 1 2 3',
  'a 0x10',
  'a 1_0',
  '{a="b"} 1',
])('a line that is no sample is not taken for one: %j', (line) => {
  expect(parseSample(line)).toBeNull();
});

test('samples of other metrics are passed over, however they are cut into parts', async () => {
  const text = 'other{ 1\nwanted{a="ä"} 1\r\nwanted_too 2';
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at++) {
    const parts = [bytes.subarray(0, at), bytes.subarray(at)];
    const found = [];
    for await (const sample of readSamples(Readable.from(parts), ['wanted'])) found.push(sample);
    expect(found).toEqual([
      { name: 'wanted', labels: new Map([['a', 'ä']]), value: 1 },
      { name: 'wanted_too', labels: new Map(), value: 2 },
    ]);
  }
});

test('a text that is not metrics, has an endless line or does not end is refused, with what is wrong', async () => {
  await expect(read(['wanted is away'], ['wanted'])).rejects.toThrow(
    'it has the line "wanted is away", which is no metric',
  );
  await expect(read(['a'.repeat(20_000)])).rejects.toThrow('it has a line of more than 16384 characters');
  const endless = (function* () {
    for (;;) yield Buffer.from(`# ${'a'.repeat(2 ** 10)}\n`.repeat(2 ** 10));
  })();
  await expect(async () => {
    for await (const _ of readSamples(Readable.from(endless), ['wanted'])) expect.unreachable();
  }).rejects.toThrow('it has more than 64 MiB');
});

test('no line makes the parser throw', () => {
  const line = fc.oneof(fc.string(), fc.stringMatching(/^[a-z]{1,9}\{([a-z]="[a-z\\"]*",?)*\} [0-9.e+-]*$/));
  fc.assert(
    fc.property(line, (text) => {
      parseSample(text);
    }),
  );
});

test.each([
  ['labels', `a{${'b="\\\\",'.repeat(2_000)}`],
  ['escapes', `a{b="${'\\'.repeat(16_000)}`],
  ['blanks', `${'a'.repeat(100)} ${' '.repeat(16_000)}x y`],
])('a line full of %s holds nothing up', async (_what, line) => {
  expect(await leastBlockedBy(async () => parseSample(line))).toBeLessThan(LONGEST_BLOCK_MS);
});
