import { expect, test } from 'vitest';
import { cacheScope } from '#runtimes/docker/cache-scope.ts';

const identity = {
  installation: 'i',
  organizationId: 'o',
  projectId: 'p',
  environmentId: 'e',
  serviceId: 's',
  generation: 1,
};

test('builds of an organization share their caches, and none with the code of strangers', () => {
  const own = cacheScope({ identity });
  expect(cacheScope({ identity: { ...identity, environmentId: 'f', serviceId: 't' } })).toBe(own);
  expect(cacheScope({ identity: { ...identity, organizationId: 'other' } })).not.toBe(own);
  const strangers = [identity, { ...identity, environmentId: 'f' }].map((one) =>
    cacheScope({ identity: one, isUntrusted: true }),
  );
  expect(new Set([own, ...strangers]).size).toBe(3);
  expect(cacheScope({ identity: { ...identity, serviceId: 't' }, isUntrusted: true })).toBe(strangers[0]);
});
