import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';
import type { TestRegistry } from '#test/harness/registry.ts';

/**
 * Lets a cluster of the tests pull from a registry, which listens on this machine's loopback only. Returns a function that ends that. A
 * cluster that `KUBECONFIG` names is left as it is.
 */
export async function letPull({ directory, nodeAddress }: TestCluster, registry: TestRegistry): Promise<() => void> {
  if (directory === null) return () => undefined;
  const host = nodeAddress.replace(/\d+$/, '1');
  const port = Number(registry.host.split(':')[1]);
  const forwarder = createServer((socket) => {
    const there = connect(port, '127.0.0.1');
    socket.on('error', () => there.destroy());
    there.on('error', () => socket.destroy());
    socket.pipe(there).pipe(socket);
  }).listen(0, host);
  await once(forwarder, 'listening');
  const server = `http://${host}:${(forwarder.address() as AddressInfo).port}`;
  const folder = path.join(directory, 'registries', registry.host);
  await mkdir(folder, { recursive: true });
  await writeFile(
    path.join(folder, 'hosts.toml'),
    `server = "${server}"\n[host."${server}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
  return () => void forwarder.close();
}
