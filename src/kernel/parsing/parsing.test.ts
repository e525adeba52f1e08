import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { LIMITS, type Format, type Shape } from '#kernel/parsing/formats.ts';
import { ParsingError, readArchiveOf, readFileOf } from '#kernel/parsing/index.ts';
import { readParts, toParts } from '#kernel/parsing/parts.ts';
import { ParserPool } from '#kernel/parsing/pool.ts';

const read = (format: 'json' | 'hcl', text: string, owner = newId()) =>
  readFileOf(owner, format, { name: 'the-file', text });

/** HashiCorp's parser takes minutes for it. */
const ENDLESS = '/* '.repeat(170_000);

/** A pool of its own, with a time limit that a test can wait for. */
function shortPool(milliseconds: number, megabytes = 256) {
  const pool = new ParserPool();
  return (owner: string, format: Format, text: string) =>
    pool.run(owner, { format, text, options: { maxAliasCount: 0 } }, { ...LIMITS[format], milliseconds, megabytes });
}

test('a file that cannot be read is refused with its name and what is wrong, or with the limit', async () => {
  const yaml = { maxAliasCount: 0 };
  for (const [work, message] of [
    [() => read('hcl', 'x'.repeat(600 * 1024)), 'the-file: it is larger than 512 KiB'],
    [() => read('hcl', 'a = 1\nx = "b'), 'the-file: line 2: Unterminated template string'],
    [() => read('json', '{"__proto__": 1}'), 'the-file: it is not JSON'],
    [() => readFileOf(newId(), 'yaml', { name: 'the-file', text: 'a: [' }, yaml), 'the-file: it is not YAML'],
  ] as const) {
    await expect(work()).rejects.toThrow(message);
    await expect(work()).rejects.toMatchObject({ code: 'bad_request' });
  }
});

const keep = (text: string, shape: Shape, refusesAmbiguousKeys?: boolean) =>
  readFileOf(newId(), 'json-shape', { name: 'the-file', text }, { shape, refusesAmbiguousKeys });

test('of a text of JSON only what a shape names is kept, of its kinds and up to 20,000 values', async () => {
  const items = [{ id: 1, more: 2, links: [{ href: 'a', x: 1 }, 7], events: ['push', { a: 1 }] }, 'text'];
  expect(
    await keep(JSON.stringify({ items, next: null }), {
      items: [{ id: true, links: [{ href: true }], events: [true], gone: true }],
      next: true,
    }),
  ).toEqual({ items: [{ id: 1, links: [{ href: 'a' }, null], events: ['push', null] }, null] });
  expect(await keep('', [true])).toBeNull();
  expect(await keep('{"other":1}', JSON.parse('{"constructor":true,"toString":true}'))).toEqual({});
  const many = `[${'1,'.repeat(20_000)}1]`;
  await expect(keep(many, [true])).rejects.toMatchObject({ problem: 'it has more than 20000 values', kind: 'limit' });
  expect(await keep(many, [true, 3])).toEqual([1, 1, 1]);
});

test.each([10, 20_000])(
  'a text of any length and a whole value are kept where a shape says so (%i characters)',
  async (length) => {
    const text = 'é'.repeat(length);
    const value = { a: [1, 1.5, null, { b: text }] };
    expect(await keep(JSON.stringify({ text, value, no: 1 }), { text: 'text', value: 'json', no: 'text' })).toEqual({
      text,
      value: JSON.stringify(value),
    });
  },
);

test.each([
  ['{"config":{"a":["x"]},"config":{}}', 'its key "config" is repeated'],
  ['{"config":{"a":["x"]},"\\u0063onfig":{}}', 'its key "config" is repeated'],
  ['{"config":{"a":[],"A":["x"]}}', 'its key "A" must be written "a"'],
  ['{"list":[{},{"ſ":1}]}', 'its key "ſ" must be written "s"'],
  ['{"other":[{"a":1,"a":2},"config"],"config":{"config":1,"Config":":","a":["x"]},"list":[]}', null],
])('keys that programs read in several ways are refused if that is asked for: %s', async (text, problem) => {
  const shape: Shape = { config: { a: ['text'] }, list: [{ s: true }] };
  const read = keep(text, shape, true);
  if (problem === null) expect(await read).toMatchObject({ config: { a: ['x'] } });
  else await expect(read).rejects.toThrow(`the-file: ${problem}`);
  expect(await keep(text, shape)).toBeTypeOf('object');
});

test('texts of megabytes are searched for ambiguous keys as well', async () => {
  const text = JSON.stringify({ long: '\\"'.repeat(1_000_000), s: 1 });
  expect(await keep(text, { s: true }, true)).toEqual({ s: 1 });
  await expect(keep(text.replace(/}$/, ',"s":2}'), { s: true }, true)).rejects.toThrow('is repeated');
});

test('parts hold every item of a list in order, and large ones alone', async () => {
  const items = Array.from({ length: 30_000 }, (_, n) => ({ n, text: n === 7 ? 'x'.repeat(500_000) : '' }));
  const parts = toParts(items);
  expect(parts.length).toBeGreaterThan(5);
  expect(await readParts(parts)).toEqual(items);
  expect(await readParts(toParts([]))).toEqual([]);
});

test('a file that takes too long or too much memory is refused with that limit', async () => {
  await expect(shortPool(500)(newId(), 'hcl', ENDLESS)).rejects.toThrow('it takes longer than 0.5 s to read');
  const many = `[${'1,'.repeat(250_000)}1]`;
  await expect(shortPool(60_000, 16)(newId(), 'yaml', many)).rejects.toThrow('it takes more than 16 MB of memory');
});

test('a thread that cannot be made fails its file and leaves the place to the next one', async () => {
  // Threads run programs of this machine only.
  const pool = new ParserPool(new URL('https://example.com/worker.ts'));
  const ask = (owner: string) => pool.run(owner, { format: 'json', text: '1', options: {} }, LIMITS.json);
  const files = await Promise.allSettled(['a', 'a', 'b', 'c', 'd', 'e', 'f'].map(ask));
  const failed = { status: 'rejected', reason: expect.objectContaining({ code: 'ERR_INVALID_URL_SCHEME' }) };
  expect(files).toEqual(files.map(() => failed));
});

test('a signal that lives longer than the files read with it keeps nothing of them', async () => {
  const pool = new ParserPool();
  const { signal } = new AbortController();
  const ask = () => pool.run('a', { format: 'json', text: '1', options: {} }, LIMITS.json, signal);
  const files = [ask(), ask(), ask()];
  expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0);
  expect(await Promise.all(files)).toEqual([1, 1, 1]);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('an owner whose files take all of their time does not hold up another owner', async () => {
  const pool = shortPool(1_000);
  const attacker = newId();
  const slow = Array.from({ length: 5 }, () =>
    pool(attacker, 'hcl', ENDLESS).then(
      () => 'read',
      () => 'refused',
    ),
  );
  const order: string[] = [];
  void slow[3]!.then(() => order.push('the fourth of the attacker'));
  await pool(newId(), 'json', '{}');
  order.push('the other');
  expect(await Promise.all(slow)).toEqual(slow.map(() => 'refused'));
  expect(order[0]).toBe('the other');
});

test('archives that take their time do not hold up files of other formats', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-archives-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const stop = new AbortController();
  const limits = { mostBytes: 2 ** 50, mostFiles: 1 };
  const archives = ['a', 'b', 'c', 'd', 'e'].map((name) =>
    readArchiveOf(
      newId(),
      '/dev/zero',
      { output: path.join(folder, name), author: 'a', seconds: 1, message: 'm', ...limits },
      stop.signal,
    ),
  );
  expect(await Promise.all(Array.from({ length: 6 }, () => read('json', '{}')))).toHaveLength(6);
  stop.abort(new Error('enough'));
  for (const end of await Promise.allSettled(archives))
    expect(end).toMatchObject({ status: 'rejected', reason: { message: 'enough' } });
});

test('files of one owner beyond the 64 that may wait are refused with 503 and a time to ask again', async () => {
  const owner = newId();
  const all = await Promise.allSettled(Array.from({ length: 80 }, () => read('json', '{}', owner)));
  const refused = all.filter((one) => one.status === 'rejected').map((one) => one.reason as ParsingError);
  expect(refused).toHaveLength(15);
  expect(refused[0]).toMatchObject({ code: 'unavailable', headers: { 'Retry-After': '5' } });
});

test('a parser that was ended by a file is replaced for the next one', async () => {
  const owner = newId();
  const [refused, next] = await Promise.all([
    read('hcl', `x = ${'['.repeat(250_000)}`, owner).catch((error: Error) => error.message),
    read('hcl', 'x = [1]', owner),
  ]);
  expect([refused, next]).toEqual(['the-file: it is nested too deeply', { x: [1] }]);
});
