import type { FakeFaults } from '#runtimes/fake/faults.ts';
import type { FakeCluster } from '#runtimes/fake/rollouts.ts';
import type { Router } from '#runtimes/router.ts';
import type { Capabilities, Deployable, TaskSpec } from '#runtimes/runtime.ts';

/** Options of a fake runtime: the location of its state, and its faults. */
export interface FakeOptions extends FakeFaults {
  /** Receives the routes; each pretended instance then has its own HTTP server. Without it nothing listens. */
  router?: Router;
  /**
   * Folder of the state, visible to other processes; a file `faults` in it holds more FakeFaults in JSON. Without it the state lives in
   * this object only.
   */
  directory?: string;
  /** Features that its check finds missing, with remedies. */
  missing?: Capabilities['missing'];
  /** Makes it behave like a large cluster; without it everything is rolled out within `submit`. */
  cluster?: FakeCluster;
  /** Answer of `refusals`; by default nothing is refused. */
  refusals?(spec: Deployable | TaskSpec): string[];
}
