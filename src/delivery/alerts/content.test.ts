import { describe, expect, test } from 'vitest';
import { merge, partsOf, type Content } from '#delivery/alerts/content.ts';

const CONTENT: Content = {
  rule: 'deployments',
  severity: 'HIGH',
  happened: 'its last deployment has failed',
  summary: null,
  runbook_url: null,
  firing: [],
  resolved: [],
};

const textOf = (changes: Partial<Content>) =>
  partsOf({ ...CONTENT, ...changes })
    .map(({ text }) => text)
    .join('');

const subjects = (from: number, count: number, detail = '') =>
  Array.from({ length: count }, (_, index) => ({
    id: `id ${from + index}`,
    name: `service ${from + index}`,
    detail,
    since: '2026-01-31T09:05:00.000Z',
  }));

describe('a message', () => {
  test('has the URL of its runbook where that fits, and says where a longer one stands', () => {
    const url = 'https://wiki.example.com/';
    expect(textOf({ runbook_url: url })).toContain(`\nRunbook: ${url}`);
    // Each of these letters takes six characters of a URL.
    for (const long of ['a'.repeat(1_000), 'ü'.repeat(300)]) {
      const text = textOf({ runbook_url: url + long });
      expect(text).toContain('\nRunbook: its URL is too long');
      expect(text).not.toContain(url);
    }
  });

  test('names what it tells of, and services where it was stored before there was anything else', () => {
    const content = { firing: subjects(1, 1), subjects: 'these git tokens' };
    expect(textOf(content)).toContain('\nTrue of these git tokens: its last deployment has failed.');
    expect(textOf({ ...content, firing: [], resolved: subjects(1, 1) })).toContain(
      '\nNo longer true of these git tokens:',
    );
    expect(textOf({ firing: subjects(1, 1) })).toContain('\nTrue of these services:');
  });

  test('names 20 services and counts the others', () => {
    const text = textOf({ firing: subjects(1, 25) });
    expect(text).toContain('service 20, since 2026-01-31 09:05 UTC\n… and 5 more');
    expect(text).not.toContain('service 21');
  });

  test('that waits keeps no more than 200 services and 300 characters of each, and says so', () => {
    let content = merge(undefined, { ...CONTENT, firing: subjects(1, 150, 'd'.repeat(5_000)) });
    content = merge(content, { ...CONTENT, firing: subjects(151, 150), resolved: subjects(1_000, 300) });
    expect([content.firing.length, content.resolved.length]).toEqual([200, 200]);
    expect(content.firing[0]!.detail).toHaveLength(300);
    expect(textOf(content)).toContain('\n… and 180 more at least');
    // One that is named and mended is told as mended.
    content = merge(content, { ...CONTENT, resolved: subjects(1, 1) });
    expect(content.firing.map(({ id }) => id)).not.toContain('id 1');
  });
});
