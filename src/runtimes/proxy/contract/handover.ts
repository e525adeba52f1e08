import { once } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startTraffic } from '#runtimes/contract/setup.ts';
import { brokenPromises, type ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import { echo, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { connectRaw, fetchAgain, fetchFrom } from '#runtimes/proxy/contract/visitors.ts';

/** Tests that visitors notice nothing when another release of the proxy takes over. */
export function describeHandover({ open, gives }: ProxyContract): void {
  const fetchKept = gives('restingConnections') ? fetchFrom : fetchAgain;

  test('no request is lost while other releases take over one after the other, on new connections and kept ones', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await open();
    const { port } = proxy;
    const host = await proxy.routed([upstream]);
    const agent = new Agent({ keepAlive: true });
    const ask = async (isKept: boolean) => {
      const options = { method: 'POST', body: 'question', ...(isKept ? { agent } : {}) };
      const answer = await (isKept ? fetchKept : fetchFrom)(port, host, options);
      if (answer.status !== 200 || JSON.parse(answer.body).body !== 'question')
        throw new Error(`${answer.status} ${answer.body}`);
      return answer;
    };
    const [kept, fresh] = [startTraffic(() => ask(true), 4), startTraffic(() => ask(false), 4)];
    for (const release of ['b', 'c', 'd']) {
      await sleep(200);
      await proxy.start({ release });
      expect(proxy.port).toBe(port);
      expect(await proxy.nameAt(host)).toBe('a');
    }
    await sleep(200);
    for (const stop of [kept, fresh]) {
      const { sent, failures } = await stop();
      expect(brokenPromises(gives, failures).slice(0, 5)).toEqual([]);
      expect(sent).toBeGreaterThan(20);
    }
    agent.destroy();
    expect(await proxy.subject.faults()).toEqual([]);
  });

  test('requests under way when another release takes over are answered, and routes change for the next ones', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    await using old = await startUpstream((request, response) => {
      request.resume();
      void go.then(() => response.end('old'));
    });
    await using next = await startUpstream(echo('next'));
    await using proxy = await open();
    const host = await proxy.routed([old]);
    const came = once(old.server, 'request');
    const download = proxy.fetch(host);
    await came;
    const upload = await connectRaw(proxy.port);
    const second = once(old.server, 'request');
    upload.socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 8\r\n\r\nhalf`);
    // A proxy may wait for the whole body before it sends any of it.
    await Promise.race([second, sleep(500)]);
    await proxy.start({ release: 'b' });
    await proxy.route(host, [next], 'HTTP', 2);
    expect(await proxy.nameAt(host)).toBe('next');
    upload.socket.write('half');
    resolve();
    expect(await download).toMatchObject({ status: 200, body: 'old' });
    expect(await upload.until((said) => /\r\n\r\n./.test(said))).toMatch(/^HTTP\/1\.1 200 /);
    await upload[Symbol.asyncDispose]();
    await proxy.subject.router.drained([{ address: '127.0.0.1', port: old.port }], 10_000);
  });
}
