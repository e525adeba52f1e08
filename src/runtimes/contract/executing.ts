import { Readable, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import type { Contract } from '#runtimes/contract/setup.ts';
import type { ExecRequest, Handle } from '#runtimes/runtime.ts';

const MIB = 2 ** 20;

/** Programs beside a workload, of runtimes that can. */
export function describeExecuting(contract: () => Contract): void {
  async function run(handle: Handle, request: Partial<ExecRequest>, signal = AbortSignal.timeout(60_000)) {
    const parts: Buffer[] = [];
    const stdout = new Writable({
      write: (part: Buffer, _encoding, done) => {
        parts.push(part);
        done();
      },
    });
    const end = await contract().runtime.exec!(handle, { command: [], environment: {}, stdout, ...request }, signal);
    return { ...end, output: Buffer.concat(parts) };
  }

  test('a program beside it reads its input to the end, and output, errors and status come back apart', async () => {
    const c = contract();
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec({ environment: { OWN: 'own' } }));
    const program = `process.stdin.pipe(process.stdout).on('error', () => {});
      process.stdin.on('end', () => { console.error(process.env.OWN + ' ' + process.env.GIVEN); process.exitCode = 7; });`;
    const sent = Buffer.alloc(3 * MIB, 'abcdefgh');
    const { exitCode, stderr, output } = await run(handle, {
      command: ['node', '-e', program],
      environment: { GIVEN: "it's $HOME" },
      stdin: Readable.from([sent.subarray(0, MIB), sent.subarray(MIB)]),
    });
    expect([exitCode, stderr]).toEqual([7, "own it's $HOME"]);
    expect(output.equals(sent)).toBe(true);
    expect(await run(handle, { command: ['node', '-e', '0'] })).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('a program beside it waits while nobody takes its output, and is given up when it is cancelled', async () => {
    const c = contract();
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec());
    const abort = new AbortController();
    let taken = 0;
    const stdout = new Writable({
      highWaterMark: 1,
      write: (part: Buffer) => {
        // Never done: no more may come than what lies in buffers.
        taken += part.length;
        setTimeout(() => abort.abort(), 300);
      },
    });
    const endless = `const part = Buffer.alloc(${MIB}); (function more() { process.stdout.write(part, more); })();`;
    await expect(run(handle, { command: ['node', '-e', endless], stdout }, abort.signal)).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(taken).toBeLessThan(8 * MIB);
  });

  test('beside what is stopped no program runs', async () => {
    const c = contract();
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec());
    await c.runtime.stop(handle, newContext());
    await expect(run(handle, { command: ['node', '-e', '0'] })).rejects.toMatchObject({ code: 'failed' });
  });
}
