import { expect, test } from 'vitest';
import { foreignLabelIn, inspectChartObject } from '#kernel/parsing/chart-object.ts';
import { LONGEST_BLOCK_MS, leastBlockedBy } from '#test/harness/blocking.ts';

const options = { group: '/api/v1', resource: 'configmaps', namespace: 'qd-own' };

test('labels are looked for in objects: a text of several megabytes takes no time', async () => {
  const text = 'a'.repeat(4 * 2 ** 20);
  const look = async () =>
    expect(foreignLabelIn({ labels: text, metadata: { labels: text }, list: [text, null, 1] })).toBeNull();
  expect(await leastBlockedBy(look)).toBeLessThan(LONGEST_BLOCK_MS);
  expect(foreignLabelIn({ list: [null, { labels: { 'quarterdeck.service': 'a' } }] })).toBe('quarterdeck.service');
});

test('a label is found in lists of lists', () => {
  const object = { labels: { 'app.kubernetes.io/managed-by': 'quarterdeck' } };
  expect(foreignLabelIn({ many: [1, [null, [object]]] })).toBe('app.kubernetes.io/managed-by');
});

test('a name that is no text is none, and what is no object is refused', () => {
  expect(inspectChartObject('{"metadata":{"name":{"a":1}}}', options)).toMatchObject({ name: null, isHook: false });
  for (const text of ['[]', 'null', '1', 'metadata: {}']) expect(() => inspectChartObject(text, options)).toThrow();
});
