import { startReportingCaddy } from '#runtimes/proxy/caddy/contract.fixture.ts';
import { describeProxyFuzz } from '#runtimes/proxy/contract/fuzz/index.ts';

describeProxyFuzz('caddy', startReportingCaddy, 10_000);
