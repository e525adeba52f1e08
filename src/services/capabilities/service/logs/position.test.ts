import { expect, test } from 'vitest';
import { makeRandom, seedOf, type Random } from '#test/harness/random.ts';
import { LogPosition } from '#services/capabilities/service/logs/position.ts';
import { RunPosition } from '#services/capabilities/service/logs/run-position.ts';
import type { LogLine } from '#runtimes/runtime.ts';

/** Line and the moment at which a reader gets it, both in milliseconds. */
interface Arriving {
  line: LogLine;
  arrives: number;
}

/** Makes a log of several instances, with many lines at one moment; lines of some come later than those of others. */
function makeLog(random: Random): Arriving[] {
  const start = Date.UTC(2026, 0, 1);
  const instances = Array.from({ length: 1 + random.below(4) }, (_, n) => ({ name: `pod-${n}`, arrives: 0 }));
  let at = 0;
  return Array.from({ length: 200 }, (_, n) => {
    at += random.below(3) === 0 ? random.below(20_000) : 0;
    const instance = random.pick(instances);
    instance.arrives = Math.max(instance.arrives, at + random.below(20_000));
    const line = {
      at: new Date(start + at).toISOString(),
      instance: instance.name,
      generation: 1,
      stream: 'stdout',
      text: String(n),
    } as const;
    return { line, arrives: instance.arrives };
  });
}

test('whoever resumes again and again gets each line once', () => {
  const seed = seedOf();
  const random = makeRandom(seed);
  for (let round = 0; round < 100; round++) {
    const log = makeLog(random);
    const got: string[] = [];
    let id: string | undefined;
    // What was written before the first line of the first visit is not wanted, so the first line of all has come by then: it is written
    // within 20 s and comes within 20 s.
    let now = 40_000;
    for (let visits = 0; got.length < log.length && visits < 1_000; visits++) {
      const position = id === undefined ? new LogPosition() : LogPosition.read(id)!;
      const { since } = position;
      now += random.below(30_000);
      const stored = log.filter(({ line, arrives }) => arrives <= now && (since === undefined || line.at >= since));
      const live = log.filter(({ arrives }) => arrives > now).sort((a, b) => a.arrives - b.arrives);
      const read = [...stored.sort((a, b) => (a.line.at < b.line.at ? -1 : a.line.at > b.line.at ? 1 : 0)), ...live];
      let count = 1 + random.below(20);
      for (const { line, arrives } of read) {
        const place = position.take(line);
        if (place === 'gap') throw new Error(`A gap was told before ${line.text}; SEED=${seed}`);
        if (place === 'sent') continue;
        got.push(line.text);
        id = position.toString();
        now = Math.max(now, arrives);
        if (--count === 0) break;
      }
    }
    expect(got.toSorted(), `SEED=${seed}`).toEqual(log.map(({ line }) => line.text).toSorted());
  }
});

test('a position stays short however many instances there were', () => {
  const position = new LogPosition();
  for (let n = 0; n < 10_000; n++)
    position.take({ at: new Date(n).toISOString(), instance: `pod-${n}`, generation: 1, stream: 'stdout', text: 'x' });
  expect(position.toString()!.length).toBeLessThan(4_096);
  expect(LogPosition.read(position.toString()!)!.toString()).toBe(position.toString());
});

/** Makes a line of an instance, `n` milliseconds after the first of January 2026. */
const lineOf = (instance: string, n: number, text = `${instance} ${n}`): LogLine => ({
  at: new Date(Date.UTC(2026, 0, 1) + n).toISOString(),
  instance,
  generation: 1,
  stream: 'stdout',
  text,
});

/** Returns the position behind these lines, as a client sends it. */
function behind(...lines: LogLine[]): LogPosition {
  const position = new LogPosition();
  for (const line of lines) position.take(line);
  return LogPosition.read(position.toString()!)!;
}

test('a gap is told of each instance whose last line does not come again, and of no other one', () => {
  const lines = [lineOf('a', 1), lineOf('b', 2), lineOf('c', 3)];
  const position = behind(...lines);
  const later = [lines[1]!, lineOf('a', 10), lineOf('b', 11), lineOf('c', 12), lineOf('a', 13), lineOf('new', 14)];
  expect(later.map((line) => position.take(line))).toEqual(['sent', 'gap', 'new', 'gap', 'new', 'new']);
});

test('no gap is told where a later beginning leaves out the last line of an instance', () => {
  const position = behind(lineOf('a', 1), lineOf('b', 20));
  position.readFrom(lineOf('', 10).at);
  expect([lineOf('a', 30), lineOf('b', 31)].map((line) => position.take(line))).toEqual(['new', 'gap']);
});

test('of more instances than a position names, no line is sent again', () => {
  const lines = Array.from({ length: 200 }, (_, n) => lineOf(`pod-${n}`, n));
  const position = behind(...lines);
  expect(new Set(lines.map((line) => position.take(line)))).toEqual(new Set(['sent']));
  expect(position.take(lineOf('pod-0', 300))).toBe('new');
  expect(position.take(lineOf('pod-199', 301))).toBe('new');
});

test('a log that goes on has every line, however many instances write in one moment', () => {
  const position = new LogPosition();
  for (let round = 0; round < 3; round++)
    for (let n = 0; n < 200; n++) expect(position.take(lineOf(`pod-${n}`, 1, `${round}`))).toBe('new');
});

test.each([
  '',
  'i',
  'i.1.1.0',
  'i.1.1.0.x',
  'i.1.1.',
  'i.-1.1.0.',
  'i.zzzzzzzzzz.1.0.',
  `i.1.1.0.${'aaaaaa~1~1~aaaaaa,'.repeat(400)}`,
  'r.1.1.1',
  'r.zzzzzzzzzz.',
  // A chunk, or a line, above the highest integer of the database.
  `r.1.${'A'.repeat(22)}~zik0zk~0`,
  `r.1.${'A'.repeat(22)}~1~zik0zk`,
  `r.1.${`${'A'.repeat(22)}~1~1,`.repeat(300)}`,
])('%s is no position', (text) => {
  expect(LogPosition.read(text)).toBeUndefined();
  expect(RunPosition.read(text)).toBeUndefined();
});

test('the position in runs is read as it was written, up to the highest integer of the database', () => {
  const position = new RunPosition();
  position.advance(new Date('2026-01-01T00:00:00.123Z'));
  position.set('2f6b0c64-7c4c-4c2f-9d5b-0b6b1a8f2b11', { sequence: 3, lines: 12 });
  position.set('ffffffff-ffff-ffff-ffff-ffffffffffff', { sequence: 2 ** 31 - 1, lines: 0 });
  const read = RunPosition.read(position.toString())!;
  expect(read.toString()).toBe(position.toString());
  expect(read.newest).toBe(Date.parse('2026-01-01T00:00:00.123Z'));
  expect(read.placeIn('2f6b0c64-7c4c-4c2f-9d5b-0b6b1a8f2b11')).toEqual({ sequence: 3, lines: 12 });
  expect(read.placeIn('ffffffff-ffff-ffff-ffff-ffffffffffff')).toEqual({ sequence: 2 ** 31 - 1, lines: 0 });
});

test('a position in runs stays short however many runs there were', () => {
  const position = new RunPosition();
  for (let n = 0; n < 1_000; n++)
    position.set(`2f6b0c64-7c4c-4c2f-9d5b-${n.toString(16).padStart(12, '0')}`, {
      sequence: 2 ** 31 - 1,
      lines: 2 ** 31 - 1,
    });
  expect(position.toString().length).toBeLessThan(4_096);
  expect(RunPosition.read(position.toString())!.toString()).toBe(position.toString());
});
