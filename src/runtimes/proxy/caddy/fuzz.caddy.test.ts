import { startReportingCaddy } from '#runtimes/proxy/caddy/contract.fixture.ts';
import { describeProxyFuzz } from '#runtimes/proxy/contract/fuzz/index.ts';

/**
 * Caddy 2.6 keeps about one of 5,000 hostile connections for good (docs/decisions/0022-caddy-serves-what-strangers-reach.md). How many depends
 * on how their packets meet: twice as many are allowed.
 */
const STUCK_SHARE = 2 / 5_000;

// 50,000 take two and a half minutes on two cores that other work shares.
describeProxyFuzz('caddy', startReportingCaddy, 50_000, STUCK_SHARE);
