import { startBuiltin } from '#runtimes/proxy/builtin/contract.fixture.ts';
import { describeProxyContract } from '#runtimes/proxy/contract/index.ts';

describeProxyContract('builtin', startBuiltin);
