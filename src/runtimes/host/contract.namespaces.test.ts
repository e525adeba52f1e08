import { describe } from 'vitest';
import { contractSubject, tryMachine } from '#runtimes/host/testing.ts';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';

const { namespaces, networks } = await tryMachine();

/** Contract of an ordinary user. As root the whole contract runs with networks; `behaviour.test.ts` tests the differences without them. */
describe.skipIf(!namespaces || networks)('as an ordinary user', () => {
  describeRuntimeContract('host, namespaces', contractSubject({ network: 'machine' }), {
    without: { siblings: 'in the network of the machine services do not reach each other by name' },
  });
});
