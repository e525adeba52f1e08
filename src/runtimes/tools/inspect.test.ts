import { expect, test } from 'vitest';
import { inspectTools } from '#runtimes/tools/inspect.ts';

test('a machine without helm is told that charts take a Kubernetes cluster, not that helm would make them deploy', async () => {
  const helm = (await inspectTools('/nowhere')).find(({ name }) => name === 'helm')!;
  expect(helm).toMatchObject({ state: 'missing', found: 'not found' });
  const advice = helm.advice.join(' ');
  expect(advice).toContain('Helm services take a Kubernetes cluster, with or without it.');
  expect(advice).not.toMatch(/deploy/i);
});
