/**
 * The reverse proxy of a node: `node proxy-main.ts <directory> <ProxyConfig as JSON>`. It is a process of its own with its last
 * routes on disk, so that traffic flows while the control plane restarts (engine.md, *Routing*).
 */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createControlServer } from '#runtimes/proxy/control-server.ts';
import { CONTROL_SOCKET } from '#runtimes/proxy/protocol.ts';
import type { ProxyConfig, ProxyStatus } from '#runtimes/proxy/protocol.ts';
import { createProxyServer } from '#runtimes/proxy/proxy-server.ts';
import { RouteFiles } from '#runtimes/proxy/route-files.ts';
import { RouteTable } from '#runtimes/proxy/route-table.ts';
import { DEFAULT_TIMES, Upstreams } from '#runtimes/proxy/upstreams.ts';
import { readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';

/** How long requests under way may take when the proxy is asked to end. */
const ENDING_MS = 8_000;
/** Keeps the port that was chosen when the setting is 0. */
const PORT_FILE = 'port.json';

/** Listens on the wanted port; with 0 on the one of the last time if it is free. */
async function listen(server: Server, { host, port }: ProxyConfig): Promise<number> {
  const last = port === 0 ? readJson<{ port: number }>(PORT_FILE)?.port : undefined;
  if (last !== undefined) {
    try {
      await once(server.listen(last, host), 'listening');
      return last;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  await once(server.listen(port, host), 'listening');
  const chosen = (server.address() as AddressInfo).port;
  writeAtomically(PORT_FILE, JSON.stringify({ port: chosen }));
  return chosen;
}

async function main(): Promise<void> {
  const [directory, configText] = process.argv.slice(2);
  const config = JSON.parse(configText!) as ProxyConfig;
  // The socket's name may have 108 bytes, so it is relative to this folder.
  process.chdir(directory!);
  process.umask(0o077);
  const upstreams = new Upstreams(DEFAULT_TIMES);
  const table = new RouteTable(upstreams);
  const files = new RouteFiles('routes');
  for (const service of files.readAll(console.error)) table.set(service);
  const { server, end } = createProxyServer(table);
  const port = await listen(server, config);
  const status = (): ProxyStatus => {
    return { config, pid: process.pid, port, services: table.size, underWay: upstreams.underWay() };
  };
  const control = createControlServer({ table, files, upstreams, status });
  rmSync(CONTROL_SOCKET, { force: true });
  await once(control.listen(CONTROL_SOCKET), 'listening');
  console.log(`listening on ${config.host}:${port}, ${table.size} service(s)`);
  process.once('SIGTERM', () => {
    setTimeout(() => process.exit(0), ENDING_MS);
    server.once('close', () => process.exit(0));
    end();
  });
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
