import { expect, test } from 'vitest';
import { bodyFor, mailTextOf } from '#resources/alert-receiver/message.ts';

const HOSTILE = '@everyone [a](https://evil.example) <!channel> *bold*\nnext';
const parts = [{ text: 'HIGH: ' }, { text: HOSTILE, foreign: true }, { text: '\nsecond line' }];

test('Discord gets a message that mentions nobody, and whose values are no links or markup', () => {
  const body = bodyFor('https://discord.com/api/webhooks/1/secret', parts) as { content: string };
  expect(body).toMatchObject({ allowed_mentions: { parse: [] } });
  expect(body.content).toMatch(/^HIGH: /);
  expect(body.content).not.toContain('@everyone');
  expect(body.content).not.toContain('https://evil.example');
  expect(body.content).not.toMatch(/(?<!\\)[[\]*<>]/);
  expect(body.content.split('\n')).toHaveLength(2);
});

test('Teams gets a card with one run of plain text for each line', () => {
  const url = 'https://prod-01.westeurope.logic.azure.com/workflows/1';
  const { attachments } = bodyFor(url, parts) as {
    attachments: { content: { body: { inlines: { type: string; text: string }[] }[] } }[];
  };
  const runs = attachments[0]!.content.body.flatMap(({ inlines }) => inlines);
  expect(runs.map(({ type }) => type)).toEqual(['TextRun', 'TextRun']);
  expect(runs[0]!.text).not.toContain('https://evil.example');
  expect(runs[1]!.text).toBe('second line');
});

test('any other receiver gets the form of Slack, and a host that only looks like another one too', () => {
  for (const url of [
    'https://hooks.slack.com/services/1',
    'https://discord.com.evil.example/',
    'https://discord.com/x/slack',
  ]) {
    const body = bodyFor(url, parts) as { text: string };
    expect(Object.keys(body)).toEqual(['text']);
    expect(body.text).not.toMatch(/<!channel>|@everyone|https:\/\/evil/);
  }
});

test('a long message loses whole lines and no half of an escape, whatever its names', () => {
  const names = Array.from({ length: 40 }, (_, index) => [
    { text: '\n• ' },
    { text: `${index} ${'<&😀'.repeat(30)}`, foreign: true },
  ]);
  for (const url of ['https://discord.com/api/webhooks/1/s', 'https://hooks.slack.com/services/1']) {
    const body = bodyFor(url, [{ text: 'HIGH: ' }, { text: 'a rule', foreign: true }, ...names.flat()]) as Record<
      string,
      string
    >;
    const text = body.content ?? body.text!;
    expect(text.length).toBeLessThanOrEqual(1_900);
    const lines = text.split('\n');
    expect(lines[0]).toBe('HIGH: a rule');
    expect(lines.at(-1)).toBe('…');
    for (const line of lines.slice(1, -1)) expect(line).toMatch(/(?:&lt;&amp;|\\<&)😀$/u);
  }
});

test('a long single line is cut between characters', () => {
  for (const text of ['a'.repeat(5_000), '😀'.repeat(5_000), `${'&'.repeat(1_000)}`]) {
    const body = bodyFor('https://hooks.slack.com/services/1', [{ text, foreign: true }]) as { text: string };
    expect(body.text.length).toBeLessThanOrEqual(1_900);
    expect(body.text).toMatch(/^(?:a|😀|&amp;)+\n…$/u);
  }
});

test('marks of direction in a name are spelled out: they turn no line around', () => {
  const body = bodyFor('https://hooks.slack.com/services/1', [{ text: 'a\u202ecod\u2066\u200f', foreign: true }]);
  expect(body).toEqual({ text: String.raw`a\u202ecod\u2066\u200f` });
});

test('a mail has its first line as the subject, on one line and not too long, and more room than a chat', () => {
  const { subject, text } = mailTextOf(parts);
  expect(subject).toMatch(/^HIGH: /);
  expect(text).toBe(`${subject}\nsecond line\n`);
  expect(text).not.toMatch(/@everyone|https:\/\/evil/);
  const lines = Array.from({ length: 30 }, () => ({ text: `\n${'x'.repeat(300)}` }));
  const long = mailTextOf([{ text: '😀'.repeat(400), foreign: true }, ...lines]);
  expect([...long.subject]).toHaveLength(150);
  expect(long.text.split('\n')).toHaveLength(32);
  const longest = mailTextOf([{ text: 'first' }, ...lines, ...lines, ...lines]);
  expect(longest.text.length).toBeLessThanOrEqual(20_001);
});
