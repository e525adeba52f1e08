import { describe } from 'vitest';
import { contractSubject, tryMachine } from '#runtimes/host/testing.ts';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';

const { networks } = await tryMachine();

describe.skipIf(!networks)('as root', () => {
  describeRuntimeContract('host, namespaces and networks', contractSubject({}));
});
