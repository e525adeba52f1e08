import type { Router } from '#runtimes/router.ts';
import type { FakeRuntime } from '#runtimes/fake/fake-runtime.ts';
import { FakeRuntimeObject } from '#runtimes/fake/fake-runtime.ts';
import type { FakeFaults } from '#runtimes/fake/faults.ts';
import { createDirectoryStore, createMemoryStore } from '#runtimes/fake/store.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

export type { FakeRuntime } from '#runtimes/fake/fake-runtime.ts';
export type { FakeCall, FakeFaults, FakeVerb } from '#runtimes/fake/faults.ts';

export interface FakeOptions extends FakeFaults {
  /** Gets the routes; each pretended instance then has an HTTP server of its own. Without it nothing listens. */
  router?: Router;
  /** Folder of the state, so that another process sees it. Without it the state lives and dies with this object. */
  directory?: string;
  /** What `refusals` answers; by default nothing is refused. */
  refusals?(spec: WorkloadSpec): string[];
}

/**
 * A runtime that runs nothing: for tests of the engine (it can be slow, fail, hang or die on order) and for trying the API.
 * It keeps what it was told, answers like a real one, writes log lines and, given a router, serves a small HTTP application.
 */
export function createFakeRuntime(options: FakeOptions = {}): FakeRuntime {
  const store = options.directory ? createDirectoryStore(options.directory) : createMemoryStore();
  return new FakeRuntimeObject(store, options);
}
