import { globSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { anySignal, leaseController } from '#kernel/lease-signal.ts';

/** Creates a lease that ends without a sign, as while the process is stopped. */
function silentLease() {
  const lease = { over: false };
  return { lease, signal: leaseController(() => lease.over).signal };
}

test('a signal combined with a lease’s is aborted as lost when it is read after the lease ended, at any depth', () => {
  const { lease, signal } = silentLease();
  const deadline = new AbortController();
  const combined = anySignal([anySignal([deadline.signal, signal]), new AbortController().signal]);
  const heard: unknown[] = [];
  combined.addEventListener('abort', () => heard.push(combined.reason));
  expect([combined.aborted, heard]).toEqual([false, []]);
  lease.over = true;
  expect([combined.aborted, combined.reason, heard]).toEqual([true, 'lost', ['lost']]);
});

test('a signal whose reason is a word throws an Error with a message, which steps and logs can show', () => {
  const lease = leaseController(() => false);
  const combined = anySignal([lease.signal]);
  lease.abort('cancel');
  for (const signal of [lease.signal, combined])
    expect(() => signal.throwIfAborted()).toThrow(new Error('It was cancelled.', { cause: 'cancel' }));
  const late = new Error('too late');
  const other = leaseController(() => false);
  other.abort(late);
  expect(() => other.signal.throwIfAborted()).toThrow(late);
});

test('a combined signal takes the reason of the source that was aborted first, also before it was made', () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const combined = anySignal([first.signal, second.signal]);
  second.abort('second');
  first.abort('first');
  expect([combined.reason, anySignal([first.signal, second.signal]).reason]).toEqual(['second', 'first']);
});

test('a combined signal that nobody keeps is collected while its source lives on', async () => {
  const source = leaseController(() => false);
  const made = Array.from({ length: 1000 }, () => new WeakRef(anySignal([source.signal])));
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await new Promise(setImmediate);
  collect();
  expect(made.filter((one) => one.deref()).length).toBeLessThan(10);
});

test('signals are combined by `anySignal` everywhere: AbortSignal.any would not notice the end of a lease', () => {
  const users = globSync('src/**/*.ts').filter(
    (file) => !file.includes('kernel/lease-signal') && readFileSync(file, 'utf8').includes('AbortSignal.any('),
  );
  expect(users).toEqual([]);
});
