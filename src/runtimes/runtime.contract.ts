import { afterAll, beforeAll, describe, type TestContext } from 'vitest';
import { describeApplying } from '#runtimes/contract/applying.ts';
import { describeDisk } from '#runtimes/contract/disk.ts';
import { describeEgress } from '#runtimes/contract/egress.ts';
import { describeExecuting } from '#runtimes/contract/executing.ts';
import { describeImages } from '#runtimes/contract/images.ts';
import { describeLifecycle } from '#runtimes/contract/lifecycle.ts';
import { describeBuilding, describeObserving } from '#runtimes/contract/observing.ts';
import { Contract } from '#runtimes/contract/setup.ts';
import type { ContractOptions, MakeRuntime } from '#runtimes/contract/setup.ts';
import { describeTasks, describeTaskEnds } from '#runtimes/contract/tasks.ts';
import { describeSurroundings } from '#runtimes/contract/surroundings.ts';

export type { ContractOptions, MakeRuntime } from '#runtimes/contract/setup.ts';

/** Tests whose services a small cluster is removing when the next ones wait for it. */
const MOST_CLEARING = 3;

/**
 * The suite that every runtime passes (docs/contributing/engine.md, *Runtimes*). Called at the top of a test file:
 *
 *     describeRuntimeContract('docker', async ({ router, directory, installation }) => ({
 *       runtime: await createDockerRuntime({ router, directory, installation }),
 *       leftovers: (identity) => …,
 *       reopen: () => createDockerRuntime({ router, directory, installation }),
 *     }));
 *
 * The workload is a small HTTP server (`fake/application.ts`) for Node, built from the Dockerfile that
 * `contract/fixture.ts` writes. Tests have services of their own, run beside each other, and leave nothing behind.
 */
export function describeRuntimeContract(name: string, makeRuntime: MakeRuntime, options: ContractOptions = {}): void {
  // Each test has services of its own, and waits for them most of its time.
  describe(`runtime contract: ${name}`, { timeout: options.timeoutMs ?? 60_000, concurrent: true }, () => {
    let opened: Contract | undefined;
    const clearing: Promise<void>[] = [];
    const contract = (test?: TestContext): Contract => {
      if (!test || !options.isSmall) return opened!;
      const own = opened!.forTest();
      test.onTestFinished(() => {
        const cleared = own.clear();
        cleared.catch(() => undefined);
        // Instances take seconds to end: the next test begins meanwhile.
        return clearing.push(cleared) > MOST_CLEARING ? clearing.shift() : undefined;
      });
      return own;
    };

    beforeAll(async () => {
      opened = await Contract.open(makeRuntime, options);
    }, options.timeoutMs ?? 120_000);
    afterAll(async () => {
      await Promise.all(clearing);
      await opened?.close();
    }, 300_000);

    const without = options.without ?? {};
    describe('observing', () => describeObserving(contract, options));
    describe.skipIf(without.builds)('building', () => describeBuilding(contract));
    describe.skipIf(without.builds)('images', () => describeImages(contract));
    describe.skipIf(without.disk)('disk', () => describeDisk(contract, options));
    describe('executing', () => describeExecuting(contract, options));
    describe('applying', () => describeApplying(contract));
    describe('surroundings', () => describeSurroundings(contract, options));
    describe.skipIf(without.tasks)('commands that end', () => describeTaskEnds(contract, options));
    describe.skipIf(without.tasks)('what commands find around them', () => describeTasks(contract, options));
    // They try every address of the machine, those of other tests among them.
    describe.skipIf(without.egress)('commands that are kept to a list of hosts', { concurrent: false }, () =>
      describeEgress(contract, options),
    );
    describe('lifecycle', () => describeLifecycle(contract, options));
  });
}
