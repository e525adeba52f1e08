import { contractSubject } from '#runtimes/host/testing.ts';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';

describeRuntimeContract('host, plain folders', contractSubject({ mode: 'plain' }), {
  without: {
    siblings: 'in the network of the machine services do not reach each other by name',
    egress: 'nothing keeps a process in without namespaces',
    absolutePaths: 'only what lies below a WORKDIR can be used',
  },
});
