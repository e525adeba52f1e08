import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OptionalGuarantee, ProxyStart, ProxySubject, StartProxy } from '#runtimes/proxy/contract/subject.ts';
import { fetchFrom } from '#runtimes/proxy/contract/visitors.ts';
import type { Answer } from '#runtimes/proxy/contract/visitors.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

let hosts = 0;

/** Proxy in its own folder, with helpers for the tests of the suite. */
export class ProxyHouse implements AsyncDisposable {
  readonly directory: string;
  readonly #start: StartProxy;
  readonly #options: Partial<ProxyStart>;
  subject!: ProxySubject;

  private constructor(start: StartProxy, options: Partial<ProxyStart>) {
    // The folder's name may exceed 108 bytes, the limit for the name of a unix socket.
    this.directory = join(mkdtempSync(join(tmpdir(), 'proxy-')), 'a'.repeat(100));
    this.#start = start;
    this.#options = options;
  }

  static async open(start: StartProxy, options: Partial<ProxyStart> = {}): Promise<ProxyHouse> {
    const house = new ProxyHouse(start, options);
    await house.start();
    return house;
  }

  /** Starts the proxy of the folder, or adopts the running one. */
  async start(changes: Partial<ProxyStart> = {}): Promise<ProxySubject> {
    const defaults = { limits: {}, trustedProxies: [], release: 'a' };
    this.subject = await this.#start({ directory: this.directory, ...defaults, ...this.#options, ...changes });
    return this.subject;
  }

  get port(): number {
    return this.subject.router.port;
  }

  /** Returns a host name that no other test has. */
  host(): string {
    return `app-z${++hosts}.localhost`;
  }

  /** Routes a host to upstreams, as a service of the same name. */
  async route(
    host: string,
    upstreams: Upstream[],
    protocol: RouteEntry['protocol'] = 'HTTP',
    generation = 1,
  ): Promise<void> {
    const plain = upstreams.map(({ address, port }) => ({ address, port }));
    await this.subject.router.set(host, generation, [{ host, protocol, upstreams: plain }]);
  }

  /** Routes a new host to upstreams and returns it. */
  async routed(upstreams: Upstream[], protocol: RouteEntry['protocol'] = 'HTTP'): Promise<string> {
    const host = this.host();
    await this.route(host, upstreams, protocol);
    return host;
  }

  fetch(host: string, options: Parameters<typeof fetchFrom>[2] = {}): Promise<Answer> {
    return fetchFrom(this.port, host, options);
  }

  /** Returns the name of the upstream (`echo`) that answers for a host, or the status. */
  async nameAt(host: string): Promise<string> {
    const { status, body } = await this.fetch(host);
    return status === 200 ? (JSON.parse(body).name as string) : String(status);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.subject.router.close();
    await this.subject.stop();
    rmSync(join(this.directory, '..'), { recursive: true, force: true });
  }
}

/** Tools of the groups of the suite. */
export interface ProxyContract {
  /** Returns a proxy with default limits that all tests share; none of them ends it. */
  shared(): ProxyHouse;
  /** Starts a proxy for one test. */
  open(options?: Partial<ProxyStart>): Promise<ProxyHouse>;
  /** Returns whether the proxy gives an optional guarantee. Tests of other guarantees are not registered. */
  gives(guarantee: OptionalGuarantee): boolean;
}

/** Failures of traffic that break a promise: if waiting connections may be reset, visitors connect again. */
export const brokenPromises = (gives: ProxyContract['gives'], failures: string[]): string[] =>
  gives('waitingConnections') ? failures : failures.filter((failure) => !failure.includes('ECONNRESET'));

/** True if this machine shows how many files another process has open. */
export const showsDescriptors = existsSync('/proc/self/fd');

/** Counts the files and sockets that a process has open. */
export const openDescriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
