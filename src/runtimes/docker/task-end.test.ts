import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Docker from 'dockerode';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newContext, newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import { LOOPBACK } from './container-config.ts';
import type { DockerNode } from './node.ts';
import { awaitEnd } from './task-end.ts';

/** Messages about a container's files from an engine that is about to end: it has removed the files already. */
const ENDING = [
  'error creating overlay mount to /data/overlay2/f2b3/merged: no such file or directory',
  'remount /data/overlay2/f2b3/merged/etc/resolv.conf, flags: 0x44000: no such file or directory',
];

const BEGUN = new Date(Date.now() - 5000).toISOString();
const inspected = (running: boolean) => ({
  Id: 'b7253434cd1d',
  Config: { Labels: {}, Tty: false },
  State: {
    Running: running,
    Paused: false,
    Restarting: false,
    OOMKilled: false,
    ExitCode: 3,
    StartedAt: BEGUN,
    FinishedAt: running ? '0001-01-01T00:00:00Z' : new Date().toISOString(),
  },
});

/** Answers to requests for the files of the one container of this engine, whose command has ended. */
let files: ((response: ServerResponse) => void)[];
let removed: boolean;
const engine = createServer((request, response) => {
  const url = request.url!;
  if (url.includes('/logs?')) return void response.end();
  if (url.includes('/archive?')) return (files.shift() ?? answer(404, 'no such file'))(response);
  if (removed) return answer(404, 'no such container')(response);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(inspected(false)));
});
const answer = (status: number, message: string) => (response: ServerResponse) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ message }));
};

beforeAll(() => new Promise<void>((resolve) => engine.listen(0, LOOPBACK, resolve)));
afterAll(() => void engine.close());
beforeEach(() => {
  files = [];
  removed = false;
});

function awaitIt() {
  const { port } = engine.address() as AddressInfo;
  const node = { engine: new Docker({ host: LOOPBACK, port }), publishAddress: LOOPBACK } as DockerNode;
  const begun = inspected(true) as unknown as Docker.ContainerInspectInfo;
  return awaitEnd(node, newTask(newIdentity('i'), 'image', []), begun, newContext());
}

test.each(ENDING)('an engine that is about to end is asked again how a command ended: %s', async (message) => {
  files = [answer(500, message), (response) => response.destroy()];
  expect(await awaitIt()).toMatchObject({ reason: 'exited', exitCode: 3 });
  expect(files).toEqual([]);
});

test('a command whose container is removed before its files could be read is lost', async () => {
  files = [
    (response) => {
      removed = true;
      answer(500, 'RWLayer of container b7253434cd1d is unexpectedly nil')(response);
    },
  ];
  expect(await awaitIt()).toMatchObject({ reason: 'lost', exitCode: null });
});

test('what the engine refuses for good is told at once', async () => {
  files = [answer(403, 'authorization denied by plugin')];
  await expect(awaitIt()).rejects.toThrow('authorization denied by plugin');
});
