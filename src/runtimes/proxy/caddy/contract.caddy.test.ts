import { startCaddy } from '#runtimes/proxy/caddy/contract.fixture.ts';
import { losesWaiting } from '#runtimes/proxy/caddy/waiting.ts';
import { describeProxyContract } from '#runtimes/proxy/contract/index.ts';

// `.ci/run` tells Linux to move them.
const waitingConnections = 'Linux is not told to move connections from a listening socket that closes to the next one';

describeProxyContract('caddy', startCaddy, {
  without: {
    addressLimit: 'Caddy does not count connections by address',
    connectionLimit: 'Caddy does not count connections',
    lineLimit: 'Caddy limits the bytes of a head, not its lines',
    stalls: 'Caddy limits the whole time of a body, which would end long uploads, not a pause within it',
    forwardedFirst: 'Go sends the fields of a head in the order of their names',
    strictFraming: 'Go reads a request with a length and chunks by its chunks, and no chunks in HTTP/1.0',
    strictAnswers: 'Go reads such answers by the more certain of their parts, and Caddy answers 200 to 101 unasked',
    cutChunks: 'version 2.6 ends an answer in chunks that broke off as if it were whole',
    restingConnections: 'Caddy closes connections that rest when its configuration changes',
    ...(losesWaiting() ? { waitingConnections } : {}),
    earlyAnswers: 'version 2.6 waits for the whole body',
    bodiesSentAgain: 'version 2.6 has read the body when it tries the next upstream',
    earlyBytes: 'version 2.6 loses what a visitor sends in the packet of its handshake',
    plainHttp2: 'Caddy takes HTTP/2 without TLS only while a gRPC service is routed',
    halfClosed: "Caddy takes the end of a visitor's side for the end of the visit",
  },
});
