import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, inject, test } from 'vitest';
import { findServer } from '#platform/database/find-server.ts';
import { isDatabaseAway } from '#platform/database/index.ts';

test('a server that takes connections and answers nothing is not waited for', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined))).listen(
    0,
    '127.0.0.1',
  );
  await once(silent, 'listening');
  try {
    const { port } = silent.address() as AddressInfo;
    const databaseUrl = `postgres://someone@127.0.0.1:${port}/some`;
    const error = await findServer({ databaseUrl, databaseDirectUrl: '' }, 200).catch((reason: unknown) => reason);
    expect((error as Error).message).toContain(`DATABASE_URL: the PostgreSQL at 127.0.0.1:${port} cannot be used`);
    expect(isDatabaseAway((error as Error).cause)).toBe(true);
  } finally {
    for (const socket of sockets) socket.destroy();
    silent.close();
  }
});

test('two URLs of one database lead to it, whatever their time zones', async () => {
  const { host, port, user, password, database } = inject('postgres');
  const url = (zone: string) =>
    `postgres://${user}:${String(password)}@/${database ?? 'postgres'}?host=${host}&port=${port}&options=${encodeURIComponent(`-c TimeZone=${zone}`)}`;
  await expect(findServer({ databaseUrl: url('UTC'), databaseDirectUrl: url('Asia/Tokyo') })).resolves.toMatchObject({
    isPooled: false,
  });
});
