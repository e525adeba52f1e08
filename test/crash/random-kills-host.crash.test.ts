import { afterAll, beforeAll, test } from 'vitest';
import { pino } from 'pino';
import { createRuntimes, type Runtimes } from '#app/runtimes.ts';
import { killAtRandom, removeAll } from '#test/crash/harness/kills.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import { startReceiver, type Receiver } from '#test/crash/harness/receiver.ts';

const KILLS = process.env.SOAK ? 1000 : 5;

const machine = useMachine({ QUARTERDECK_RUNTIME: 'host', QUARTERDECK_WORKER_SLOTS: '4' });
let receiver: Receiver;
let runtimes: Runtimes;
beforeAll(async () => {
  receiver = await startReceiver();
  await machine.start('api', { role: 'api' });
  await machine.start('worker 1', { role: 'worker' });
  await machine.start('worker 2', { role: 'worker' });
  runtimes = createRuntimes(machine.platform.settings, machine.installation.id, pino({ level: 'silent' }));
});
afterAll(async () => {
  await removeAll(machine, await runtimes.onMachine('host'));
  await runtimes.close();
  await receiver.close();
});

test.runIf(process.platform === 'linux')(
  `on the host runtime: processes are killed ${KILLS} times at random, and what runs is what the database says`,
  { timeout: process.env.SOAK ? 6 * 3_600_000 : 900_000 },
  async () => killAtRandom({ machine, receiver, kills: KILLS, runtime: await runtimes.onMachine('host') }),
);
