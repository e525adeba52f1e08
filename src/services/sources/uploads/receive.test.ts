import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { receiveBody, type ReceiveOptions } from '#services/sources/uploads/receive.ts';

let folder: string;
let made = 0;
beforeAll(() => void (folder = mkdtempSync(path.join(tmpdir(), 'qd-receive-'))));
afterEach(() => vi.useRealTimers());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MIB = 2 ** 20;

async function receive(body: Readable, options: Partial<ReceiveOptions> = {}): Promise<Buffer> {
  const file = path.join(folder, String(++made));
  await receiveBody(body, file, { mostBytes: MIB, signal: new AbortController().signal, ...options });
  return readFileSync(file);
}

const bodyOf = (...chunks: Buffer[]) => Readable.from(chunks, { objectMode: false });

describe('a body', () => {
  test('is written as it came, up to the limit', async () => {
    const whole = Buffer.alloc(MIB, 'abc');
    expect(await receive(bodyOf(whole.subarray(0, 1000), whole.subarray(1000)))).toEqual(whole);
  });

  test('above the limit is refused with 413 before the rest of it comes', async () => {
    const body = new PassThrough();
    const received = receive(body);
    body.write(Buffer.alloc(MIB));
    body.write(Buffer.alloc(1));
    await expect(received).rejects.toMatchObject({ code: 'too_large', message: 'The body is larger than 1 MiB.' });
    expect(body.listenerCount('data')).toBe(0);
  });

  test('without a byte is refused', async () => {
    await expect(receive(bodyOf())).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('A body is required'),
    });
  });

  test('that ends early is refused, also when it has ended before', async () => {
    const body = new PassThrough();
    const received = receive(body);
    body.write('half');
    body.destroy();
    await expect(received).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('is not whole: the connection ended'),
    });
    await expect(receive(body)).rejects.toThrow('the connection ended');
    const broken = new PassThrough();
    const failed = receive(broken);
    broken.destroy(new Error('reset'));
    await expect(failed).rejects.toThrow('the connection ended');
  });

  test('that comes too slowly is given up, and one that is slow enough is not', async () => {
    const slow = new PassThrough();
    const drops = setInterval(() => slow.write('x'), 20);
    await expect(receive(slow, { slowMs: 300 })).rejects.toThrow('less than 64 KiB came in 0.3 s');
    clearInterval(drops);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const steady = new PassThrough();
    const received = receive(steady, { slowMs: 1000 });
    for (let at = 0; at < 5; at++) {
      const came = once(steady, 'data');
      steady.write(Buffer.alloc(64 * 1024));
      await came;
      vi.advanceTimersByTime(900);
    }
    steady.end();
    expect(await received).toHaveLength(5 * 64 * 1024);
  });

  test('of a request that is given up is not waited for', async () => {
    const stop = new AbortController();
    const received = receive(new PassThrough(), { signal: stop.signal });
    stop.abort();
    await expect(received).rejects.toThrow('is not whole');
    await expect(receive(new PassThrough(), { signal: stop.signal })).rejects.toThrow('is not whole');
  });

  test('is not written where the file cannot be', async () => {
    const options = { mostBytes: MIB, signal: new AbortController().signal };
    await expect(receiveBody(bodyOf(Buffer.from('x')), path.join(folder, 'no/file'), options)).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});
