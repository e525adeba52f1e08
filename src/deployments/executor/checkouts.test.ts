import { expect, test } from 'vitest';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_CHECKOUT_SLOTS: '4' });

/** Checkouts under way, in the order in which they began: each goes on when it is let. */
const underWay: { organizationId: string; letGo(): void }[] = [];
let most = 0;
useEngine(app, {}, undefined, {
  around: (sources) => ({
    checkout: async (request) => {
      const { organizationId, signal } = request;
      const ended = Promise.withResolvers<void>();
      const one = { organizationId, letGo: () => ended.resolve(void underWay.splice(underWay.indexOf(one), 1)) };
      signal.addEventListener('abort', one.letGo, { once: true });
      most = Math.max(most, underWay.push(one));
      await ended.promise;
      signal.removeEventListener('abort', one.letGo);
      await sources.checkout(request);
    },
  }),
});

const organizations = () => underWay.map(({ organizationId }) => organizationId);

/** Asks for a deployment of an environment with so many applications. Returns the environment's address. */
async function deploy(admin: Actor, applications: number): Promise<string> {
  const { environment } = await makeExample(admin);
  const url = `/environment/${environment.id}`;
  for (let at = 1; at < applications; at++)
    ok(await admin.post(`${url}/application`, exampleBody({ name: `hello ${at}` })), 201);
  ok(await admin.post(`${url}/deploy`), 200);
  return url;
}

/** Waits until the log of an environment says so many times that a checkout waits for others. */
const untilWaiting = (admin: Actor, url: string, times: number) =>
  expect
    .poll(
      async () =>
        JSON.stringify(ok(await admin.get(`${url}/logs`), 200)).split('Waiting for another checkout').length - 1,
    )
    .toBe(times);

const ended = async (admin: Actor, url: string): Promise<string> =>
  ok(await admin.get(`${url}/status?wait=60`), 200).state;

test('no more repositories of an organization are checked out at a time than half of the places, and another has the rest', async () => {
  const [many, other] = [await app.organization(), await app.organization()];
  const first = await deploy(many, 4);
  await untilWaiting(many, first, 2);
  await expect.poll(organizations).toEqual([many.organizationId, many.organizationId]);
  const second = await deploy(other, 1);
  await expect.poll(organizations).toEqual([many.organizationId, many.organizationId, other.organizationId]);
  underWay[2]!.letGo();
  expect(await ended(other, second)).toBe('DEPLOYED');
  // The others of the first organization go on as its places become free.
  for (let left = 4; left > 0; left--) {
    await expect.poll(() => underWay.length).toBe(Math.min(left, 2));
    underWay[0]!.letGo();
  }
  expect(await ended(many, first)).toBe('DEPLOYED');
  expect(most).toBe(3);
});

test('a deployment whose checkouts wait for their turn is cancelled at once, and leaves its places to others', async () => {
  const admin = await app.organization();
  const first = await deploy(admin, 3);
  await untilWaiting(admin, first, 1);
  expect(ok(await admin.post(`${first}/cancelDeployment?wait=40`), 200).state).toBe('CANCELED');
  const second = await deploy(admin, 2);
  await expect.poll(() => underWay.length).toBe(2);
  for (const { letGo } of [underWay[0]!, underWay[1]!]) letGo();
  expect(await ended(admin, second)).toBe('DEPLOYED');
  expect(underWay).toEqual([]);
});
