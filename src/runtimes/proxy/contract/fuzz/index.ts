import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HOSTS, makeExchange, type Exchange } from '#runtimes/proxy/contract/fuzz/exchanges.ts';
import type { Step } from '#runtimes/proxy/contract/fuzz/step.ts';
import { startHonestVisitors } from '#runtimes/proxy/contract/fuzz/honest.ts';
import { grpcTenant, hostileTenant, plainTenant, take, type Report } from '#runtimes/proxy/contract/fuzz/tenants.ts';
import { openDescriptors, ProxyHouse, showsDescriptors } from '#runtimes/proxy/contract/setup.ts';
import type { StartProxy } from '#runtimes/proxy/contract/subject.ts';
import { proxyFuzz, seedOf } from '#test/harness/random.ts';

/** Number of concurrent exchanges. */
const VISITORS = 128;
/** Milliseconds of silence after which a hostile visitor leaves. */
const QUIET_MS = 60;
/** Milliseconds for the answers to a well-formed visitor. */
const ANSWER_MS = 60_000;
/** Short limits, so that leftovers of hostile visitors are given up soon; a busy machine may still hold this process up for seconds. */
const LIMITS = { headMs: 8_000, idleMs: 8_000, stallMs: 8_000, answerMs: 40_000, connectMs: 20_000 };
/** Number of sockets and amount of memory that may be left over at the end: kept connections, and a heap that was not collected yet. */
const SPARE_SOCKETS = 4;
const SPARE_MIB = 160;

interface Violation {
  exchange: number | undefined;
  what: string;
}

/** Plays the visitor of one exchange and returns everything that it received, as latin1. */
async function visit(port: number, { visitor, expected }: Exchange): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  let said = '';
  let lastAt = performance.now();
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const complete = Promise.withResolvers<void>();
  socket.setEncoding('latin1').on('data', (part: string) => {
    said += part;
    lastAt = performance.now();
    if (expected && answersIn(said).length >= expected.length) complete.resolve();
  });
  socket.on('end', () => socket.end());
  socket.on('error', () => socket.destroy());
  const patience = new AbortController();
  try {
    await take(visitor, socket);
    lastAt = performance.now();
    const leave = async () => {
      if (expected) return sleep(ANSWER_MS, undefined, { signal: patience.signal });
      while (performance.now() - lastAt < QUIET_MS) await sleep(QUIET_MS / 3, undefined, { signal: patience.signal });
    };
    await Promise.race([closed, complete.promise, leave().catch(() => undefined)]);
    return said;
  } finally {
    patience.abort();
    socket.destroy();
    await closed;
  }
}

const answersIn = (said: string): { url: string; body: string }[] =>
  [...said.matchAll(/\{"at":"([^"]*)","body":"([^"]*)"\}/g)].map(([, url, body]) => ({ url: url!, body: body! }));

/** Returns the fault in everything that the visitor of an exchange received; null if there is none. */
function complaint(exchange: Exchange, said: string, made: (id: number) => Exchange): string | null {
  const told = JSON.stringify(said.slice(0, 2_000));
  if (said.includes('/honest/')) return `The visitor was told the answer to an honest visitor: ${told}`;
  for (const [, id] of said.matchAll(/\/x\/(\d+)\//g)) {
    if (Number(id) === exchange.id) continue;
    // A service that sends more than one answer poisons only its own connections.
    if (exchange.answer && made(Number(id)).answer) continue;
    return `The visitor was told the answer to exchange ${id}: ${told}`;
  }
  if (!exchange.expected) return null;
  const answers = answersIn(said);
  return JSON.stringify(answers) === JSON.stringify(exchange.expected)
    ? null
    : `The well-formed visitor expected ${JSON.stringify(exchange.expected)} and was told ${told}`;
}

/** Returns open descriptors and resident MiB of a process; null if the machine does not show them. */
function measure(pid: number): { sockets: number; mib: number } | null {
  if (!showsDescriptors) return null;
  const resident = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return { sockets: openDescriptors(pid), mib: Number(resident![1]) / 1024 };
}

/** Formats an exchange, whole unless it is very long. */
const show = (exchange: Exchange): string => {
  const short = (steps: Step[]) =>
    steps.map((step) =>
      'write' in step && step.write.length > 2_000 ? { write: `${step.write.slice(0, 2_000)}…` } : step,
    );
  const { visitor, answer } = exchange;
  return JSON.stringify({ ...exchange, visitor: short(visitor), ...(answer ? { answer: short(answer) } : {}) });
};

/**
 * Fuzzes a proxy with visitors and upstreams derived from a seed, honest visitors beside them: 2,000 exchanges, `slow` ones in CI. `SEED`
 * repeats the exchanges of a run, `PROXY_FUZZ` sets their number, and `PROXY_FUZZ_ONLY` plays one of them alone. `stuckShare` is the share
 * of exchanges that may leave a connection open for good.
 */
export function describeProxyFuzz(name: string, start: StartProxy, slow: number, stuckShare = 0): void {
  const { count, only } = proxyFuzz(slow);
  const seed = seedOf();

  describe(`proxy fuzz: ${name}`, () => {
    test('a seed makes the same exchanges again, and another seed makes others', () => {
      const made = (from: number) => Array.from({ length: 200 }, (_, id) => makeExchange(from, id));
      expect(made(7)).toEqual(made(7));
      expect(made(8)).not.toEqual(made(7));
    });

    test(
      `hostile visitors and upstreams end no process, reach no other tenant and disturb no honest visitor (${count} exchanges)`,
      { timeout: 120_000 + count * 60, retry: 0 },
      async () => {
        console.log(`SEED=${seed} PROXY_FUZZ=${count}`);
        const violations: Violation[] = [];
        const report: Report = (text, what) => {
          const id = /\/x\/(\d+)\//.exec(text)?.[1];
          violations.push({
            exchange: id === undefined ? undefined : Number(id),
            what: `${what} ${text.slice(0, 500)}`,
          });
        };
        const made = (id: number) => makeExchange(seed, id);
        await using house = await ProxyHouse.open(start, { limits: LIMITS });
        await using a = await plainTenant(HOSTS.a, report);
        await using b = await plainTenant(HOSTS.b, report);
        await using grpc = await grpcTenant(report);
        await using hostile = await hostileTenant(report, (id) => made(id).answer ?? []);
        const tenants = [a, b, grpc, hostile];
        for (const tenant of tenants) await house.route(tenant.host, [tenant.upstream], tenant.protocol);
        const pid = await house.subject.pid();
        const underWay = new Set<number>();
        const honest = startHonestVisitors(house.port, () => [...underWay].join(' '));

        const play = async (from: number, to: number) => {
          let next = from;
          const visitor = async () => {
            while (next < to && violations.length < 20) {
              const exchange = made(next++);
              underWay.add(exchange.id);
              const wrong = complaint(exchange, await visit(house.port, exchange), made);
              underWay.delete(exchange.id);
              if (wrong) violations.push({ exchange: exchange.id, what: wrong });
            }
          };
          await Promise.all(Array.from({ length: VISITORS }, visitor));
        };
        const rest = async () => {
          for (const tenant of tenants) tenant.closeIdle();
          await sleep(50);
          return measure(pid);
        };
        const before = await rest();
        // The first exchanges bring the process to its usual size.
        const first = only === undefined ? Math.min(2_000, Math.floor(count / 2)) : 0;
        await play(0, first);
        const warm = measure(pid);
        if (only === undefined) await play(first, count);
        else await play(Number(only), Number(only) + 1);
        const { asked, failures } = await honest.stop();

        const faults = await house.subject.faults();
        const told = violations
          .slice(0, 5)
          .map(({ exchange, what }) => `${what}\n${exchange === undefined ? '' : show(made(exchange))}`);
        const everything = [...told, ...failures.slice(0, 5), ...faults.slice(0, 5)];
        expect(everything.join('\n'), `SEED=${seed}`).toBe('');
        expect(await house.subject.pid(), 'the process was replaced').toBe(pid);
        expect(asked).toBeGreaterThan(only === undefined ? 20 : 0);
        if (!before || !warm || only !== undefined) return;
        const limit = before.sockets + SPARE_SOCKETS + Math.floor(count * stuckShare);
        await expect
          .poll(async () => (await rest())!.sockets, {
            timeout: 40_000,
            interval: 500,
            message: `of ${before.sockets}`,
          })
          .toBeLessThanOrEqual(limit);
        const after = measure(pid)!;
        console.log(
          `${asked} honest requests; sockets ${before.sockets} → ${after.sockets}; ` +
            `memory ${before.mib.toFixed(0)}, ${warm.mib.toFixed(0)} → ${after.mib.toFixed(0)} MiB`,
        );
        expect(after.mib).toBeLessThan(warm.mib + SPARE_MIB);
      },
    );
  });
}
