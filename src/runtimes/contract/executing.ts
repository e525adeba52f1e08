import { randomUUID } from 'node:crypto';
import { PassThrough, Readable, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import type { ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';
import type { ExecRequest, Handle } from '#runtimes/runtime.ts';

const MIB = 2 ** 20;

/** Defines the tests of programs that run beside a workload, for runtimes with `exec`. */
export function describeExecuting(contract: ContractOf, options: ContractOptions): void {
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

  test('a program beside it reads its input to the end, and output, errors and status come back apart', async (current) => {
    const c = contract(current);
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

  test('a program beside it waits while nobody takes its output, and is given up when it is cancelled', async (current) => {
    const c = contract(current);
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec());
    const abort = new AbortController();
    let taken = 0;
    const stdout = new Writable({
      highWaterMark: 1,
      write: (part: Buffer) => {
        // The write never completes: only buffered bytes may follow.
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

  test('both outputs of a program beside it are handed on, it runs in the instance that is named, and no other', async (current) => {
    const c = contract(current);
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec());
    const { instances } = await c.runtime.observe(handle);
    const errors: Buffer[] = [];
    const stderr = new Writable({ write: (part: Buffer, _encoding, done) => (errors.push(part), done()) });
    const command = ['node', '-e', 'console.log("out"); console.error("err"); process.exitCode = 3'];
    const end = await run(handle, { command, stderr, instance: instances[0]!.name });
    expect([end.exitCode, String(end.output), String(Buffer.concat(errors))]).toEqual([3, 'out\n', 'err\n']);
    await expect(run(handle, { command, instance: 'none' })).rejects.toMatchObject({ code: 'failed' });
  });

  test('a program on a terminal knows its size, and what it wrote to both outputs comes as one', async (current) => {
    const c = contract(current);
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec({ environment: { OWN: "it's", SHELL: '/bin/own' } }));
    const program = `console.log([process.stdin.isTTY, process.stdout.columns, process.stdout.rows, process.env.OWN, process.env.SHELL, ...process.argv.slice(1)].join(' '));
      console.error(String(Object.keys(process.env).filter((name) => name.startsWith('QUARTERDECK_ARGUMENT')).length));
      process.stdin.once('data', (data) => { console.log('read ' + String(data).trim()); process.exit(5); });`;
    const stdin = new PassThrough();
    stdin.write('hello\n');
    const { exitCode, output } = await run(handle, {
      command: ['node', '-e', program, '--', '$(id)', "a'b"],
      terminal: { columns: 91, rows: 37 },
      stdin,
    });
    expect(exitCode).toBe(5);
    expect(String(output)).toContain("true 91 37 it's /bin/own $(id) a'b\r\n0\r\n");
    expect(String(output)).toContain('read hello\r\n');
  });

  test.skipIf(options.without?.endOfPrograms)(
    'a cancelled program on a terminal is gone with what it started',
    async (current) => {
      const c = contract(current);
      if (!c.runtime.exec) return;
      const handle = await c.apply(c.spec());
      const abort = new AbortController();
      const stdout = new Writable({
        write: (part: Buffer, _encoding, done) => {
          if (String(part).includes('ready')) setTimeout(() => abort.abort(), 100);
          done();
        },
      });
      const mark = `mark-${randomUUID()}`;
      // Two programs, one of them in its own session; their writes after the end must not end them.
      const program = `process.on('SIGHUP', () => {}); process.stdout.on('error', () => {}); setInterval(() => {}, 1000);
      if (process.argv[2]) require('child_process').spawn('node', ['-e', process.argv[2], process.argv[1]], { detached: true, stdio: 'inherit' });
      else console.log('ready');`;
      const command = ['node', '-e', program, mark, program];
      const ending = run(handle, { command, stdout, terminal: { columns: 80, rows: 24 } }, abort.signal);
      await expect(ending).rejects.toMatchObject({ code: 'aborted' });
      const look = `const fs = require('fs'), own = process.argv[1].slice(1);
      const lines = fs.readdirSync('/proc').filter((name) => +name).map((pid) => { try { return fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8'); } catch { return ''; } });
      console.log(lines.filter((line) => line.includes('mark' + own)).length);`;
      const left = async () =>
        String((await run(handle, { command: ['node', '-e', look, `x${mark.slice(4)}`] })).output);
      await expect.poll(left).toBe('0\n');
    },
  );

  test('beside what is stopped no program runs', async (current) => {
    const c = contract(current);
    if (!c.runtime.exec) return;
    const handle = await c.apply(c.spec());
    await c.runtime.stop(handle.identity, handle, newContext());
    await expect(run(handle, { command: ['node', '-e', '0'] })).rejects.toMatchObject({ code: 'failed' });
  });
}
