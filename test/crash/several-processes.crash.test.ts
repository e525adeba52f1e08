import { expect, test } from 'vitest';
import { useMachine } from '#test/crash/harness/machine.ts';
import { findFaults } from '#test/crash/harness/world.ts';

const machine = useMachine();

test('a deployment that was answered is carried out though the worker that had it was killed', async () => {
  const api = await machine.start('api', { role: 'api' });
  const worker = await machine.start('worker', { role: 'worker' });
  const actor = await machine.organization('one');
  const environment = await actor.environment('p');
  const application = await actor.application(environment, 'hello');
  expect((await actor.ask('POST', `/application/${application}/deploy?wait=20`, 200)).state).toBe('DEPLOYED');
  const asked = await actor.ask('POST', `/application/${application}/deploy`, 200);
  await worker.kill();
  await machine.again(worker);
  await machine.settled();
  const deployments = [{ id: asked.deployment_request_id, environmentId: environment }];
  expect(await findFaults(machine, { deployments, deleted: [] })).toEqual([]);
  expect((await actor.ask('GET', `/application/${application}/status`, 200)).state).toBe('DEPLOYED');
  expect(await api.terminate()).toBe(0);
});
