import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { waitForEnd } from '#deployments/index.ts';
import { useApp } from '#test/harness/app.ts';

const statements: string[] = [];
const app = useApp({}, {}, (text) => statements.push(text));

test('many who wait for the end of deployments are answered by one statement at a time', async () => {
  const scope = { organizationId: newId() };
  const from = statements.length;
  await Promise.all(
    Array.from({ length: 100 }, () => waitForEnd(app.db, scope, newId(), 20, new AbortController().signal)),
  );
  const looks = statements.slice(from).filter((text) => text.includes('"deployment"'));
  expect(looks.length).toBeGreaterThan(0);
  expect(looks.length).toBeLessThan(5);
});

test('waiting ends at once for a caller that has gone away', async () => {
  const started = performance.now();
  await waitForEnd(app.db, { organizationId: newId() }, newId(), 20, AbortSignal.abort());
  expect(performance.now() - started).toBeLessThan(1_000);
});
