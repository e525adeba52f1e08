import { startCaddy } from '#runtimes/proxy/caddy/contract.fixture.ts';
import { describeProxyFuzz } from '#runtimes/proxy/contract/fuzz/index.ts';

describeProxyFuzz('caddy', startCaddy, 10_000);
