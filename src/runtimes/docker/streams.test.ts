import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import Docker from 'dockerode';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BuildProgress, readFields } from './build-progress.ts';
import { FrameReader } from './frames.ts';
import { LogDemultiplexer } from './log-frames.ts';
import type { RawLine } from './log-frames.ts';
import { readEvents } from './logs.ts';

const frame = (stream: 1 | 2, text: string): Buffer => {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
};

test('frames are those that docker-modem reads, whatever the size of the pieces', async () => {
  const output = fc.array(fc.tuple(fc.constantFrom(1 as const, 2 as const), fc.string({ maxLength: 40 })));
  const modem = new Docker().modem as {
    demuxStream(from: PassThrough, stdout: PassThrough, stderr: PassThrough): void;
  };
  const check = fc.asyncProperty(output, fc.integer({ min: 1, max: 50 }), async (sent, size) => {
    const bytes = Buffer.concat(sent.map(([stream, text]) => frame(stream, text)));
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    const reader = new FrameReader();
    const frames = pieces.flatMap((piece) => [...reader.read(piece)]);
    const [from, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    modem.demuxStream(from, stdout, stderr);
    from.on('end', () => [stdout, stderr].forEach((stream) => stream.end()));
    for (const piece of pieces) from.write(piece);
    from.end();
    for (const [name, stream] of [['stdout', stdout] as const, ['stderr', stderr] as const]) {
      const payloads = frames.filter((one) => one.stream === name).map(({ payload }) => payload);
      expect(Buffer.concat(payloads)).toEqual(await buffer(stream));
    }
    expect(frames.map(({ payload }) => payload.toString())).toEqual(sent.map(([, text]) => text));
  });
  await fc.assert(check, { numRuns: 300 });
});

describe('logs of containers', () => {
  const STAMP = '2026-01-02T03:04:05.123456789Z';
  const bytes = Buffer.concat([
    frame(1, `${STAMP} one two\n`),
    frame(2, `2026-01-02T03:04:06.5Z grüße\r\n`),
    frame(1, `${STAMP} ${'x'.repeat(100)}`),
    frame(1, `${STAMP} yz\n`),
    frame(1, `${STAMP} \n`),
    frame(1, `${STAMP} no end`),
  ]);
  const expected: RawLine[] = [
    { stream: 'stdout', stamp: '2026-01-02T03:04:05.123456789', text: 'one two' },
    { stream: 'stderr', stamp: '2026-01-02T03:04:06.500000000', text: 'grüße' },
    { stream: 'stdout', stamp: '2026-01-02T03:04:05.123456789', text: `${'x'.repeat(100)}yz` },
    { stream: 'stdout', stamp: '2026-01-02T03:04:05.123456789', text: '' },
    { stream: 'stdout', stamp: '2026-01-02T03:04:05.123456789', text: 'no end' },
  ];

  test.each([1, 3, 7, 64, 4096])('are the same whatever the size of the pieces: %i bytes', (size) => {
    const lines: RawLine[] = [];
    const frames = new LogDemultiplexer((line) => lines.push(line));
    for (let at = 0; at < bytes.length; at += size) frames.write(bytes.subarray(at, at + size));
    frames.end();
    expect(lines).toEqual(expected);
  });
});

test('a line without an end is cut, however long it grows, and the next one is whole', () => {
  const STAMP = '2026-01-02T03:04:05.123456789Z';
  const lines: RawLine[] = [];
  const frames = new LogDemultiplexer((line) => lines.push(line));
  for (let n = 0; n < 200; n++) frames.write(frame(1, `${STAMP} ${'x'.repeat(16_384)}`));
  frames.write(frame(1, `${STAMP} y\n`));
  frames.write(frame(1, `${STAMP} next\n`));
  expect(lines.map(({ text }) => [text.length, text.slice(0, 4)])).toEqual([
    [64 * 1024, 'xxxx'],
    [4, 'next'],
  ]);
});

describe('events of the engine', () => {
  const read = async (...parts: string[]) => {
    const ids: string[] = [];
    await readEvents(
      (async function* () {
        yield* parts;
      })(),
      (id) => ids.push(id),
    );
    return ids;
  };

  test('name the containers that start, whatever the size of the pieces', async () => {
    const text = ['{"Actor":{"ID":"one"}}', '', '{"Actor":{}}', '{"Type":"x"}', '{"Actor":{"ID":"two"}}', ''].join(
      '\n',
    );
    expect(await read(text)).toEqual(['one', 'two']);
    expect(await read(...text)).toEqual(['one', 'two']);
  });

  test('that are damaged, or have no end, end the reading with an error and not the process', async () => {
    await expect(read('{"Actor":{"ID":"one"}}\ndamaged\n')).rejects.toThrow('JSON');
    await expect(read(...Array.from({ length: 40 }, () => 'x'.repeat(64 * 1024)))).rejects.toThrow('without an end');
  });
});

describe('progress of builds', () => {
  const varint = (value: number): number[] =>
    value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))];
  const field = (number: number, content: Buffer | string | number): Buffer => {
    if (typeof content === 'number') return Buffer.from([...varint(number * 8), ...varint(content)]);
    const body = Buffer.from(content);
    return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(body.length)]), body]);
  };
  const trace = (...parts: Buffer[]): string =>
    `${JSON.stringify({ id: 'moby.buildkit.trace', aux: Buffer.concat(parts).toString('base64') })}\n`;
  const read = (text: string) => {
    const lines: string[] = [];
    const progress = new BuildProgress((line) => lines.push(line));
    for (const part of text.match(/[\s\S]{1,11}/g)!) progress.write(part);
    progress.end();
    return { lines, error: progress.error };
  };

  test('BuildKit’s steps are told once, its output by lines, what came from the cache as such', () => {
    const time = field(1, 1_700_000_000);
    const step = (name: string, ...more: Buffer[]) =>
      field(1, Buffer.concat([field(1, `sha256:${name}`), field(3, name), field(5, time), ...more]));
    const output = (text: string) => field(3, Buffer.concat([field(1, 'sha256:run'), field(3, 1), field(4, text)]));
    const { lines } = read(
      [
        trace(step('run')),
        trace(step('run'), output('first li')),
        trace(output('ne\nsecond\nthird')),
        trace(step('copy', field(4, 1), field(6, time))),
      ].join(''),
    );
    expect(lines).toEqual(['run', 'first line', 'second', 'copy', 'copy: unchanged, from the cache', 'third']);
  });

  test('the classic builder’s text is told by lines, and the reason of a failure is kept', () => {
    const messages = [
      { stream: 'Step 1/2 : FROM x' },
      { stream: '\n' },
      { stream: ' ---> 1\na\nb\n' },
      { error: 'it failed', errorDetail: {} },
    ];
    expect(read(messages.map((message) => `${JSON.stringify(message)}\r\n`).join(''))).toEqual({
      lines: ['Step 1/2 : FROM x', ' ---> 1', 'a', 'b'],
      error: 'it failed',
    });
  });

  test('a message that is cut short is an error, not a line', () => {
    expect(() => readFields(Buffer.from([0x0a]))).toThrow(/cut short/);
    expect(
      readFields(Buffer.from([0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x0d, 1, 2, 3, 4, 0x10, 0x96, 0x01]))[2],
    ).toMatchObject({ number: 2, value: 150 });
  });
});
