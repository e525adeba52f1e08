import { PassThrough, Readable, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { newContext } from '#runtimes/contract/fixture.ts';
import { stored, until, type Contract } from '#runtimes/contract/setup.ts';
import type { AsideRequest, Handle } from '#runtimes/runtime.ts';

/** Prints a sentence about itself: its variables, the machine's name, its limits as it can see them. */
const ABOUT = `console.log(JSON.stringify({ own: process.env.OWN, given: process.env.GIVEN, image: process.env.FROM_IMAGE,
  hostname: require('os').hostname(), cwd: process.cwd() }))`;
/** Waits for its program to answer, then prints the status. */
const ASK = `(async () => { for (let n = 0; n < 100; n++) try {
    console.log((await fetch('http://127.0.0.1:' + (process.env.PORT ?? 8080) + '/healthz')).status); return;
  } catch { await new Promise((resolve) => setTimeout(resolve, 100)); } process.exitCode = 1; })()`;

/** Programs in additional, temporary instances, of runtimes that can. */
export function describeExecutingAside(contract: () => Contract): void {
  let count = 0;
  async function run(handle: Handle, request: Partial<AsideRequest>, signal = AbortSignal.timeout(60_000)) {
    const parts: Buffer[] = [];
    const stdout = new Writable({
      write: (part: Buffer, _encoding, done) => {
        parts.push(part);
        done();
      },
    });
    const whole: AsideRequest = {
      name: `aside${++count}`,
      runsRelease: false,
      resources: {},
      command: [],
      environment: {},
      stdout,
      ...request,
    };
    const end = await contract().runtime.execAside!(handle, whole, signal);
    return { ...end, output: String(Buffer.concat(parts)) };
  }

  test('a program aside has image, variables and files of the release, and input, outputs and status of its own', async () => {
    const c = contract();
    if (!c.runtime.execAside) return;
    const spec = c.spec({ environment: { OWN: 'own' }, files: [{ path: '/app/contract/file', content: 'content' }] });
    const handle = stored(await c.apply(spec));
    const about = await run(handle, { command: ['node', '-e', ABOUT], environment: { GIVEN: "it's $HOME" } });
    expect(about.exitCode).toBe(0);
    expect(JSON.parse(about.output)).toMatchObject({ own: 'own', given: "it's $HOME", image: 'yes' });
    const file = `console.log(require('fs').readFileSync('contract/file', 'utf8'))`;
    expect((await run(handle, { command: ['node', '-e', file] })).output).toBe('content\n');
    const program = `process.stdin.pipe(process.stdout); process.stdin.on('end', () => { console.error('ended'); process.exitCode = 7; })`;
    const piped = await run(handle, { command: ['node', '-e', program], stdin: Readable.from([Buffer.from('input')]) });
    expect(piped).toMatchObject({ exitCode: 7, output: 'input', stderr: 'ended\n' });
    const missing = await run(handle, { command: ['no-such-program'] }).then(
      ({ exitCode }) => exitCode,
      (error: { code: string }) => error.code,
    );
    expect(missing === 'failed' || (typeof missing === 'number' && missing > 0)).toBe(true);
  });

  test('a program aside on a terminal knows its size', async () => {
    const c = contract();
    if (!c.runtime.execAside) return;
    const handle = await c.apply(c.spec());
    const program = `console.log([process.stdin.isTTY, process.stdout.columns, process.stdout.rows].join(' '));
      process.stdin.once('data', (data) => { console.log('read ' + String(data).trim()); process.exit(5); });`;
    const stdin = new PassThrough();
    stdin.write('hello\n');
    // The size follows the beginning: a program that looks at once may still see none.
    const { exitCode, output } = await run(handle, {
      command: ['node', '-e', `setTimeout(() => { ${program} }, 1500)`],
      terminal: { columns: 91, rows: 37 },
      stdin,
    });
    expect(exitCode).toBe(5);
    expect(output).toContain('true 91 37\r\n');
    expect(output).toContain('read hello\r\n');
  });

  test('an additional instance is none that serves, runs the release where that is wanted, and leaves nothing', async () => {
    const c = contract();
    if (!c.runtime.execAside) return;
    const spec = c.spec();
    const handle = await c.apply(spec);
    const before = await c.runtime.observe(handle);
    const routes = JSON.stringify(c.setup.router);
    const left = await c.subject.leftovers(spec.identity);
    const abort = new AbortController();
    const seen = Promise.withResolvers<void>();
    const stdout = new Writable({ write: (_part, _encoding, done) => (seen.resolve(), done()) });
    const command = ['node', '-e', `console.log('up'); setInterval(() => {}, 1000)`];
    const ending = run(handle, { command, stdout, runsRelease: true }, abort.signal);
    ending.catch(seen.reject);
    await seen.promise;
    expect(await c.runtime.observe(handle)).toEqual(before);
    expect(JSON.stringify(c.setup.router)).toBe(routes);
    expect((await c.subject.leftovers(spec.identity)).length).toBeGreaterThan(left.length);
    // What a living process uses is nothing broken.
    await c.runtime.removeBroken!();
    expect((await c.subject.leftovers(spec.identity)).length).toBeGreaterThan(left.length);
    abort.abort();
    await expect(ending).rejects.toMatchObject({ code: 'aborted' });
    await until(
      () => c.subject.leftovers(spec.identity),
      (now) => now.length === left.length,
    );
    expect((await run(handle, { command: ['node', '-e', ASK], runsRelease: true })).output).toBe('200\n');
    expect(await c.runtime.observe(handle)).toEqual(before);
  });

  test('a release with storage is looked at without it, and stays as it is', async () => {
    const c = contract();
    if (!c.runtime.execAside) return;
    const storage = [{ id: crypto.randomUUID(), mountPath: '/app/contract/data', sizeGib: 1 }];
    const spec = c.spec({ storage });
    const handle = await c.apply(spec);
    const write = `const fs = require('fs'); fs.mkdirSync('contract/data', { recursive: true });
      console.log(fs.readdirSync('contract/data').length); fs.writeFileSync('contract/data/aside', 'x')`;
    // Twice: what the first one wrote is gone with it.
    for (const _time of [1, 2]) expect((await run(handle, { command: ['node', '-e', write] })).output).toBe('0\n');
  });

  test('its limits are those that are asked for', async () => {
    const c = contract();
    if (!c.runtime.execAside) return;
    const handle = await c.apply(c.spec());
    const limit = `const fs = require('fs'); for (const file of ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes'])
      try { console.log(fs.readFileSync(file, 'utf8').trim()); break; } catch {}`;
    const { output } = await run(handle, { command: ['node', '-e', limit], resources: { memoryMib: 300 } });
    // Not every machine shows a workload its limits.
    if (/^\d+$/.test(output.trim()) && Number(output) < 2 ** 50) expect(Number(output)).toBe(300 * 2 ** 20);
  });

  test('a service that is removed takes its additional instances with it', async () => {
    const c = contract();
    if (!c.runtime.execAside) return;
    const spec = c.spec();
    const handle = await c.apply(spec);
    const seen = Promise.withResolvers<void>();
    const stdout = new Writable({ write: (_part, _encoding, done) => (seen.resolve(), done()) });
    const ending = run(handle, { command: ['node', '-e', `console.log('up'); setInterval(() => {}, 1000)`], stdout });
    const ended = ending.then(
      () => 'ended',
      () => 'ended',
    );
    ending.catch(seen.reject);
    await seen.promise;
    await c.runtime.remove({ ...spec.identity, generation: spec.identity.generation + 1 }, handle, newContext());
    expect(await ended).toBe('ended');
    await until(
      () => c.subject.leftovers(spec.identity),
      (now) => now.length === 0,
    );
    await expect(run(handle, { command: ['node', '-e', '0'] })).rejects.toMatchObject({ code: 'failed' });
  });
}
