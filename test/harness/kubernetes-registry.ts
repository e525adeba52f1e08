import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import path from 'node:path';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';
import type { TestRegistry } from '#test/harness/registry.ts';

/**
 * Lets the node of a cluster of the tests pull from a registry of the tests; close the server that is returned. The registry listens on
 * this machine's loopback only and has no TLS. A file tells that to the node's containerd, as an administrator of nodes does.
 */
export async function letPull(cluster: TestCluster, registry: TestRegistry): Promise<Server> {
  const host = cluster.nodeAddress.replace(/\d+$/, '1');
  const port = Number(registry.host.split(':')[1]);
  const forwarder = createServer((socket) => {
    const there = connect(port, '127.0.0.1');
    socket.on('error', () => there.destroy());
    there.on('error', () => socket.destroy());
    socket.pipe(there).pipe(socket);
  }).listen(0, host);
  await once(forwarder, 'listening');
  const server = `http://${host}:${(forwarder.address() as AddressInfo).port}`;
  const folder = path.join(cluster.directory!, 'registries', registry.host);
  await mkdir(folder, { recursive: true });
  await writeFile(
    path.join(folder, 'hosts.toml'),
    `server = "${server}"\n[host."${server}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
  return forwarder;
}
