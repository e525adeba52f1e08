import type { FakeFaults } from '#runtimes/fake/faults.ts';
import type { Router } from '#runtimes/router.ts';
import type { TaskSpec, WorkloadSpec } from '#runtimes/runtime.ts';

/** How a fake runtime is made: where it keeps what it knows, and what goes wrong on order. */
export interface FakeOptions extends FakeFaults {
  /** Gets the routes; each pretended instance then has an HTTP server of its own. Without it nothing listens. */
  router?: Router;
  /** Folder of the state, so that another process sees it; a file `faults` in it holds more FakeFaults in JSON. Without it the state lives and dies with this object. */
  directory?: string;
  /** What `refusals` answers; by default nothing is refused. */
  refusals?(spec: WorkloadSpec | TaskSpec): string[];
}
