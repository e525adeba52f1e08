import { afterAll, beforeAll, test } from 'vitest';
import { setFaults } from '#test/crash/harness/faults.ts';
import { killAtRandom } from '#test/crash/harness/kills.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import { startReceiver, type Receiver } from '#test/crash/harness/receiver.ts';

/** Number of kills: a few minutes in CI, hours in the soak. */
const KILLS = process.env.SOAK ? 1000 : 30;

const machine = useMachine({ QUARTERDECK_WORKER_SLOTS: '4' });
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  await machine.start('api 1', { role: 'api' });
  await machine.start('all', { role: 'all' });
  await machine.start('worker', { role: 'worker' });
});
afterAll(() => receiver.close());

test(
  `processes are killed ${KILLS} times at random while several people work: nothing is lost, twice, or left in progress`,
  { timeout: process.env.SOAK ? 6 * 3_600_000 : 480_000 },
  () => {
    setFaults(machine.dataDir, { delayMs: { build: 50, submit: 150, remove: 50, stop: 50, restart: 50 } });
    return killAtRandom({ machine, receiver, kills: KILLS });
  },
);
