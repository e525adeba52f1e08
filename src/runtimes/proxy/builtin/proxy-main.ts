/**
 * Entry point of a node's reverse proxy: `node proxy-main.ts <directory> <ProxyConfig as JSON>`. It is a separate process with its last
 * routes on disk, so that traffic flows while the control plane restarts.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { createControlServer } from '#runtimes/proxy/builtin/control-server.ts';
import { controlSocket, controlSockets, RETIRE, UP } from '#runtimes/proxy/builtin/protocol.ts';
import type { ProxyConfig, ProxyStatus } from '#runtimes/proxy/builtin/protocol.ts';
import { surviveFaults } from '#runtimes/proxy/builtin/faults.ts';
import { leaveRequests } from '#runtimes/proxy/builtin/request-counts.ts';
import { createProxyServer } from '#runtimes/proxy/builtin/proxy-server.ts';
import { connectionsFor, openFilesLimit } from '#runtimes/proxy/descriptors.ts';
import { RouteFiles } from '#runtimes/proxy/route-files.ts';
import { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import { Upstreams } from '#runtimes/proxy/builtin/upstreams.ts';

/** Milliseconds for requests under way when the proxy is asked to end. */
const ENDING_MS = 8_000;
/** File descriptor of the listening socket, inherited from the shim. */
const LISTENER = 3;

/** Removes the control sockets of proxies that were killed. */
async function removeDead(): Promise<void> {
  for (const name of controlSockets(readdirSync('.'))) {
    const socket = connect(name);
    const lives = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (!lives) rmSync(name, { force: true });
  }
}

async function main(): Promise<void> {
  const [directory, configText] = process.argv.slice(2);
  const config = JSON.parse(configText!) as ProxyConfig;
  // A socket's name is limited to 108 bytes, so it is relative to this folder.
  process.chdir(directory!);
  process.umask(0o077);
  surviveFaults();
  const connections = connectionsFor(openFilesLimit(), config.limits.connections);
  const limits = { ...config.limits, connections };
  const upstreams = new Upstreams(limits);
  const table = new RouteTable(upstreams);
  const files = new RouteFiles('routes');
  const { server, retire, end } = createProxyServer(table, limits, config.trustedProxies);
  const status = (): ProxyStatus => {
    const { port } = server.address() as AddressInfo;
    return { config, pid: process.pid, port, services: table.size, connections, underWay: upstreams.underWay() };
  };
  const run = randomUUID();
  const requests = () => ({ run, services: table.requests });
  const control = createControlServer({ table, files, upstreams, status, requests, isServing: () => server.listening });
  await removeDead();
  // The control socket opens before the routes are read, so that no change is missed; the event loop does not run in between.
  await once(control.listen(controlSocket(process.pid)), 'listening');
  for (const service of files.readAll(console.error)) table.set(service);
  await once(server.listen({ fd: LISTENER }), 'listening');
  console.log(`${UP} on ${config.host}:${status().port}, ${table.size} service(s)`);
  const leave = () => {
    try {
      leaveRequests('.', requests());
      rmSync(controlSocket(process.pid), { force: true });
    } finally {
      process.exit(0);
    }
  };
  const within = (ms: number) => {
    setTimeout(leave, ms);
    server.once('close', leave);
  };
  process.once(RETIRE, () => {
    within(config.retireMs);
    retire();
  });
  process.once('SIGTERM', () => {
    within(ENDING_MS);
    end();
  });
}

// Only imported: this fills the compile cache for the next start.
if (import.meta.main)
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  });
