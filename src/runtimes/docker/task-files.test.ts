import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { markEnded, readEnded } from '#runtimes/docker/task-files.ts';

/** Answers of the engine to reading from a container that is being removed. */
const REMOVED = [
  'RWLayer of container b7253434cd1d is unexpectedly nil',
  'error processing tar file: Error after fallback to chroot: no such file or directory: exit status 1',
];

let answer: { status: number; message: string };
const server = createServer((_request, response) => {
  response.writeHead(answer.status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ message: answer.message }));
});
let container: Docker.Container;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  container = new Docker({ host: '127.0.0.1', port }).getContainer('b7253434cd1d');
});
afterAll(() => void server.close());

test.each(REMOVED)(
  'what is being removed needs no mark of why it ended; whoever asks for one is told: %s',
  async (message) => {
    answer = { status: 500, message };
    await markEnded(container, 'abort');
    await expect(readEnded(container)).rejects.toThrow(message);
  },
);

test('any other failure of the engine is told', async () => {
  answer = { status: 500, message: 'no space left on device' };
  await expect(markEnded(container, 'abort')).rejects.toThrow('no space left on device');
});
