import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '#test/harness/free-port.ts';

/** ACME server on loopback with its own DNS, in which every name is 127.0.0.1. */
export interface Pebble extends AsyncDisposable {
  directoryUrl: string;
  /** PEM file with the certificate of the directory itself. */
  rootsFile: string;
  /** Changes the address of a name in the DNS. */
  pointTo(host: string, address: string): Promise<void>;
}

/** Starts Pebble, which checks challenges at the given ports and issues certificates for `validitySeconds`. */
export async function startPebble(
  directory: string,
  ports: { http: number; https: number },
  validitySeconds: number,
): Promise<Pebble> {
  const [acme, management, dns, dnsManagement] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const rootsFile = join(directory, 'pebble.pem');
  const key = join(directory, 'pebble.key');
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1';
  await promisify(execFile)('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
    '-addext',
    names,
    '-keyout',
    key,
    '-out',
    rootsFile,
  ]);
  const config = join(directory, 'pebble.json');
  const pebble = {
    listenAddress: `127.0.0.1:${acme}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: rootsFile,
    privateKey: key,
    httpPort: ports.http,
    tlsPort: ports.https,
    // Zero disables Retry-After: Pebble sends a date every other time, which version 2.6 of Caddy treats as a failure.
    retryAfter: { authz: 0, order: 0 },
    profiles: { default: { description: 'short', validityPeriod: validitySeconds } },
  };
  writeFileSync(config, JSON.stringify({ pebble }));
  const env = { PATH: process.env['PATH'] ?? '', PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' };
  const off = ['http01', 'https01', 'tlsalpn01', 'doh'].flatMap((name) => [`-${name}`, '']);
  const own = ['-defaultIPv4', '127.0.0.1', '-defaultIPv6', ''];
  const listen = ['-dnsserver', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${dnsManagement}`];
  const children = [
    spawn('pebble-challtestsrv', [...own, ...listen, ...off], { env, stdio: 'ignore' }),
    spawn('pebble', ['-config', config, '-dnsserver', `127.0.0.1:${dns}`], { env, stdio: 'ignore' }),
  ];
  await untilAnswers(acme!);
  return {
    directoryUrl: `https://localhost:${acme}/dir`,
    rootsFile,
    pointTo: async (host, address) => {
      const body = JSON.stringify({ host: `${host}.`, addresses: [address] });
      const answer = await fetch(`http://127.0.0.1:${dnsManagement}/add-a`, { method: 'POST', body });
      if (!answer.ok) throw new Error(`The DNS answers ${answer.status}.`);
    },
    [Symbol.asyncDispose]: async () => void (await Promise.all(children.map(end))),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function untilAnswers(port: number): Promise<void> {
  for (const deadline = Date.now() + 60_000; ;) {
    const sent = request({ host: '127.0.0.1', port, path: '/dir', rejectUnauthorized: false, agent: false });
    sent.end();
    const answered = await once(sent, 'response').then(
      () => true,
      () => false,
    );
    sent.destroy();
    if (answered) return;
    if (Date.now() > deadline) throw new Error('Pebble does not answer.');
    await sleep(50);
  }
}
