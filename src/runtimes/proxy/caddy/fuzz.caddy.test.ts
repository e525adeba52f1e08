import { startReportingCaddy } from '#runtimes/proxy/caddy/contract.fixture.ts';
import { describeProxyFuzz } from '#runtimes/proxy/contract/fuzz/index.ts';

// Some connections stay with version 2.6 for good: ten of 50,000 (docs/decisions/0022-caddy-serves-what-strangers-reach.md).
describeProxyFuzz('caddy', startReportingCaddy, 10_000, 8);
