import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readChartIndex } from '#resources/helm-repository/chart-index.ts';

const parseIndex = (content: Buffer) => readChartIndex(newId(), 'https://charts.example.com/index.yaml', content);

const entry = (chart: number, version: number) => `  - apiVersion: v2
    appVersion: 1.${version}
    created: "2024-01-01T00:00:00Z"
    description: A chart that is described here at some length
    digest: ${'ab'.repeat(32)}
    name: chart${chart}
    urls:
    - https://charts.example.com/chart${chart}-1.${version}.0.tgz
    version: 1.${version}.0
`;
const range = (length: number) => Array.from({ length }, (_, n) => n);

test('a large index is read while this process goes on, and once only', async () => {
  const text = range(20)
    .map(
      (chart) =>
        `  chart${chart}:\n${range(60)
          .map((version) => entry(chart, version))
          .join('')}`,
    )
    .join('');
  const content = Buffer.from(`apiVersion: v1\nentries:\n${text}`);
  let turns = 0;
  const turning = setInterval(() => turns++, 5);
  const [index, same] = await Promise.all([parseIndex(content), parseIndex(content)]);
  clearInterval(turning);
  expect(turns).toBeGreaterThan(5);
  expect(same).toBe(index);
  expect(index.names()).toHaveLength(20);
  expect(index.get('chart7')).toHaveLength(60);
  expect(index.get('chart7')![3]).toEqual({
    version: '1.3.0',
    url: 'https://charts.example.com/chart7-1.3.0.tgz',
    digest: 'ab'.repeat(32),
  });
});

test.each([
  ['', 'no entries'],
  ['entries: []', 'no entries'],
  ['entries: [}', 'Flow'],
  ['{"entries":', 'JSON'],
  [`a: &a [1]\nb: &b [${'*a,'.repeat(1000)}]\nentries: {c: [${'*b,'.repeat(1000)}]}`, 'Alias'],
])('what is no index is refused, and the next one is read (%#)', async (text, message) => {
  await expect(parseIndex(Buffer.from(text))).rejects.toThrow(message);
  expect((await parseIndex(Buffer.from('entries: {x: [{version: 1.10}]}'))).get('x')![0]!.version).toBe('1.10');
});
