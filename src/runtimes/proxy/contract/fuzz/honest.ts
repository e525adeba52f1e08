import { Agent } from 'node:http';
import { HOSTS } from '#runtimes/proxy/contract/fuzz/exchanges.ts';
import { fetchFrom } from '#runtimes/proxy/contract/visitors.ts';

/** Starts honest visitors that send one request after the other, until `stop` returns the failures. */
export function startHonestVisitors(port: number, underWay: () => string) {
  const agent = new Agent({ keepAlive: true });
  const failures: string[] = [];
  let [asked, isRunning] = [0, true];
  const ask = async (host: string, isKept: boolean): Promise<void> => {
    const url = `/honest/${++asked}/`;
    const body = asked % 2 === 0 ? `body of ${asked}`.repeat(20) : undefined;
    const options = {
      path: url,
      ...(isKept ? { agent } : {}),
      ...(body === undefined ? {} : { method: 'PUT', body }),
    };
    const answer = await fetchFrom(port, host, options);
    const expected = JSON.stringify({ at: url, body: body ?? '' });
    if (answer.status !== 200 || answer.body !== expected)
      throw new Error(`${url} was answered with ${answer.status} ${answer.body.slice(0, 500)}`);
  };
  const visitor = async (host: string, isKept: boolean) => {
    while (isRunning)
      await ask(host, isKept).catch((error: Error) => {
        failures.push(`An honest visitor of ${host} failed: ${error.message}. Under way: ${underWay()}`);
      });
  };
  const all = Promise.all([visitor(HOSTS.a, true), visitor(HOSTS.b, true), visitor(HOSTS.a, false)]);
  return {
    failures,
    stop: async (): Promise<{ asked: number; failures: string[] }> => {
      isRunning = false;
      await all;
      agent.destroy();
      return { asked, failures };
    },
  };
}
