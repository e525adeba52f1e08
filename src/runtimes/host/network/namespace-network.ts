import { existsSync } from 'node:fs';
import {
  gateway,
  hardwareAddress,
  hardwareAddressOf,
  hostAddress,
  kernelName,
  subnet,
} from '#runtimes/host/network/address-plan.ts';
import { EnvironmentRecords } from '#runtimes/host/network/environment-record.ts';
import { BRIDGE_PREFIX, type Firewall } from '#runtimes/host/network/firewall.ts';
import { mainPort, type Attached, type Attachment, type InstanceNetwork } from '#runtimes/host/network/network.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import type { Bind } from '#runtimes/host/view/plan.ts';
import { runChecked, runCommand } from '#runtimes/tools/command.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

/** Network with a namespace for each instance and a bridge for each environment. Needs root and iproute2. */
export class NamespaceNetwork implements InstanceNetwork {
  readonly isolated = true;
  readonly #layout: Layout;
  readonly #installation: string;
  readonly #tools: { ip: string; nsenter: string };
  readonly #firewall: Firewall;
  readonly #records: EnvironmentRecords;
  readonly #lock = new KeyedLock();

  constructor(options: {
    layout: Layout;
    installation: string;
    tools: { ip: string; nsenter: string };
    firewall: Firewall;
  }) {
    this.#layout = options.layout;
    this.#installation = options.installation;
    this.#tools = options.tools;
    this.#firewall = options.firewall;
    this.#records = new EnvironmentRecords(options.layout);
  }

  attach(name: string, spec: Attached): Promise<Attachment> {
    const { environmentId } = spec.identity;
    // All under one lock: two environments must not choose the same network.
    return this.#lock.run('networks', async () => {
      const record = this.#records.open(environmentId, await this.#routes());
      const host = this.#records.takeHost(environmentId, record, name);
      await this.#makeBridge(environmentId, record.index);
      await this.#deleteNamespace(name);
      await this.#makeNamespace(name, environmentId, record.index, host);
      return { address: hostAddress(record.index, host), ports: {}, port: mainPort(spec) };
    });
  }

  has(name: string): boolean {
    return existsSync(namespacePath(this.#namespace(name)));
  }

  prefix(name: string): string[] {
    return [this.#tools.nsenter, `--net=${namespacePath(this.#namespace(name))}`, '--'];
  }

  binds(environmentId: string): Bind[] {
    return [{ from: this.#records.hostsFile(environmentId), to: '/etc/hosts', readOnly: true }];
  }

  hostAddress(environmentId: string): Promise<string> {
    return this.#lock.run('networks', async () => {
      const record = this.#records.open(environmentId, await this.#routes());
      await this.#makeBridge(environmentId, record.index);
      return gateway(record.index);
    });
  }

  publish(spec: WorkloadSpec, addresses: string[]): Promise<void> {
    const { environmentId, serviceId } = spec.identity;
    return this.#lock.run('networks', async () => {
      const record = this.#records.read(environmentId);
      if (!record) return;
      record.names[serviceId] = { hostname: spec.hostname, addresses };
      this.#records.write(environmentId, record);
    });
  }

  detach(name: string): Promise<void> {
    return this.#lock.run('networks', async () => {
      await this.#deleteNamespace(name);
      for (const environmentId of this.#layout.environments()) {
        const record = this.#records.read(environmentId);
        if (record?.hosts[name] === undefined) continue;
        delete record.hosts[name];
        this.#records.write(environmentId, record);
      }
    });
  }

  forget(environmentId: string, serviceId: string): Promise<void> {
    return this.#lock.run('networks', async () => {
      const record = this.#records.read(environmentId);
      if (!record) return;
      delete record.names[serviceId];
      if (Object.keys(record.names).length + Object.keys(record.hosts).length > 0)
        return this.#records.write(environmentId, record);
      await this.#removeBridge(environmentId, record.index);
    });
  }

  removeEnvironment(environmentId: string): Promise<void> {
    return this.#lock.run('networks', async () => {
      const record = this.#records.read(environmentId);
      if (!record) return;
      // Host numbers of attempts that ended before they made anything else.
      for (const name of Object.keys(record.hosts)) await this.#deleteNamespace(name);
      await this.#removeBridge(environmentId, record.index);
    });
  }

  async #removeBridge(environmentId: string, index: number): Promise<void> {
    const bridge = this.#bridge(environmentId);
    await this.#firewall.close(bridge, subnet(index));
    await this.#deleteLink(bridge);
    removeTree(this.#layout.environment(environmentId));
  }

  limits(): string[] {
    return this.#firewall.outside
      ? []
      : ['Instances reach each other and this machine, but no other addresses: install iptables.'];
  }

  #bridge(environmentId: string): string {
    return kernelName(BRIDGE_PREFIX, this.#installation, environmentId);
  }

  #namespace(instance: string): string {
    return kernelName('qdn', this.#installation, instance);
  }

  async #makeBridge(environmentId: string, index: number): Promise<void> {
    const bridge = this.#bridge(environmentId);
    if (!existsSync(`/sys/class/net/${bridge}`))
      await this.#batch([
        `link add ${bridge} address ${hardwareAddress(bridge)} type bridge`,
        `address add ${gateway(index)}/24 dev ${bridge}`,
        `link set ${bridge} up`,
      ]);
    await this.#firewall.open(bridge, subnet(index));
  }

  async #makeNamespace(name: string, environmentId: string, index: number, host: number): Promise<void> {
    const namespace = this.#namespace(name);
    const outer = this.#outerEnd(name);
    await this.#batch([
      `netns add ${namespace}`,
      `link add ${outer} type veth peer name eth0 address ${hardwareAddressOf(index, host)} netns ${namespace}`,
      `link set ${outer} master ${this.#bridge(environmentId)} up`,
    ]);
    const inside = [
      'link set lo up',
      `address add ${hostAddress(index, host)}/24 dev eth0`,
      'link set eth0 up',
      `route add default via ${gateway(index)}`,
    ];
    await this.#batch(inside, ['-netns', namespace]);
  }

  async #deleteNamespace(instance: string): Promise<void> {
    await this.#deleteLink(this.#outerEnd(instance));
    const namespace = this.#namespace(instance);
    const there = () => existsSync(namespacePath(namespace));
    if (!there()) return;
    // Another process may be deleting it at the same time.
    await this.#ip(['netns', 'delete', namespace]).catch((error: unknown) => {
      if (there()) throw error;
    });
  }

  /** Deletes a link; succeeds if it is gone. The kernel also deletes it with its namespace, possibly at this moment. */
  async #deleteLink(name: string): Promise<void> {
    const there = () => existsSync(`/sys/class/net/${name}`);
    if (!there()) return;
    await this.#ip(['link', 'delete', name]).catch((error: unknown) => {
      if (there()) throw error;
    });
  }

  #outerEnd(instance: string): string {
    return kernelName('qdv', this.#installation, instance);
  }

  async #routes(): Promise<string[]> {
    const { stdout } = await this.#ip(['-4', '-json', 'route', 'show', 'table', 'main']);
    return (JSON.parse(stdout || '[]') as { dst: string }[]).map((route) => route.dst);
  }

  #ip(args: string[]) {
    return runChecked(this.#tools.ip, args);
  }

  #batch(commands: string[], args: string[] = []) {
    return runChecked(this.#tools.ip, [...args, '-batch', '-'], { input: `${commands.join('\n')}\n` });
  }
}

const namespacePath = (name: string) => `/run/netns/${name}`;

/** Tries to create the objects that the network needs; returns null if it works, otherwise the reason. */
export async function tryNamespaceNetwork(ip: string | null, asRoot: boolean): Promise<string | null> {
  if (!asRoot) return 'only root can make networks';
  if (!ip) return 'ip (iproute2) is not installed';
  const name = kernelName('qdn', 'trial', String(process.pid), String(Date.now()));
  const made = await runCommand(ip, ['-batch', '-'], {
    input: `netns add ${name}\nlink add ${name} type bridge\nlink delete ${name}\nnetns delete ${name}\n`,
  });
  return made.exitCode === 0 ? null : made.stderr.trim().split('\n')[0]!;
}
