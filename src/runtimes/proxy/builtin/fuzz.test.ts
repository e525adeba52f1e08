import { startBuiltin } from '#runtimes/proxy/builtin/contract.fixture.ts';
import { describeProxyFuzz } from '#runtimes/proxy/contract/fuzz/index.ts';

describeProxyFuzz('builtin', startBuiltin, 50_000);
