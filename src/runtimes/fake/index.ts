import type { FakeRuntime } from '#runtimes/fake/fake-runtime.ts';
import { FakeRuntimeObject } from '#runtimes/fake/fake-runtime.ts';
import type { FakeOptions } from '#runtimes/fake/options.ts';
import { createDirectoryStore, createMemoryStore } from '#runtimes/fake/store.ts';

export type { FakeRuntime } from '#runtimes/fake/fake-runtime.ts';
export type { FakeOptions } from '#runtimes/fake/options.ts';
export type { FakeOutcome } from '#runtimes/fake/outcome.ts';
export type { FakeCall, FakeFaults, FakeVerb } from '#runtimes/fake/faults.ts';

/**
 * Creates a runtime that runs nothing: for tests of the engine (it can be slow, fail, hang or die on demand) and for trying the API. It
 * stores its input, answers like a real runtime, writes log lines and, given a router, serves a small HTTP application.
 */
export function createFakeRuntime(options: FakeOptions = {}): FakeRuntime {
  const store = options.directory ? createDirectoryStore(options.directory) : createMemoryStore();
  return new FakeRuntimeObject(store, options);
}
