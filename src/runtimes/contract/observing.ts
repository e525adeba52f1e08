import { expect, test } from 'vitest';
import type { Handle, LogLine, LogOptions, WorkloadSpec } from '#runtimes/runtime.ts';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { mountFolder, until } from '#runtimes/contract/setup.ts';
import type { Contract, ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';

/** Defines the tests of reports, logs and metrics. */
export function describeObserving(contract: ContractOf, options: ContractOptions): void {
  test('says what it is and that it can be used', async () => {
    const report = await contract().runtime.check();
    expect(report).toMatchObject({ ok: true, description: expect.stringMatching(/\w/) });
  });

  test('a spec that can run here is not refused', async (current) => {
    const c = contract(current);
    expect(c.runtime.refusals(c.spec())).toEqual([]);
  });

  test('the last lines of the log come oldest first, from both streams', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    for (const text of ['one', 'two', 'three']) {
      await c.ask(spec, `/say?text=${text}${text === 'two' ? '&stream=stderr' : ''}`);
      await until(
        () => tail(c, handle, 1),
        (lines) => lines[0]?.text === text,
      );
    }
    const lines = await tail(c, handle, 3);
    expect(lines.map((line) => line.text)).toEqual(['one', 'two', 'three']);
    if (!options.without?.streams) expect(lines.map((line) => line.stream)).toEqual(['stdout', 'stderr', 'stdout']);
    for (const line of lines) expect(line).toMatchObject({ generation: 1, instance: expect.stringMatching(/\w/) });
    for (const line of lines) expect(line.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect((await tail(c, handle, 100)).map((line) => line.text)).toContain('listening, release 1');
  });

  test('a followed log brings new lines until it is aborted', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const abort = new AbortController();
    const texts: string[] = [];
    const following = (async () => {
      for await (const line of c.runtime.logs(handle, { tail: 10, follow: true, signal: abort.signal })) {
        texts.push(line.text);
        if (line.text === 'second') abort.abort();
      }
    })();
    await until(
      async () => texts,
      (seen) => seen.includes('listening, release 1'),
    );
    await c.ask(spec, '/say?text=first');
    await until(
      async () => texts,
      (seen) => seen.includes('first'),
    );
    await c.ask(spec, '/say?text=second');
    await following;
    expect(texts.filter((text) => text === 'first' || text === 'second')).toEqual(['first', 'second']);
  });

  test('the log of what is gone is empty', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    await c.runtime.remove(spec.identity, handle, newContext());
    expect(await tail(c, handle, 10)).toEqual([]);
  });

  test('a log since a time has the lines at or after it, whatever the offset of that time', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    for (const text of ['one', 'two']) await say(c, spec, handle, text);
    const all = await tail(c, handle, 100);
    const { at } = all.find((line) => line.text === 'two')!;
    const expected = all.filter((line) => line.at >= at);
    expect(expected.length).toBeLessThan(all.length);
    const eastern = new Date(Date.parse(at) + 2 * 3_600_000).toISOString().replace('Z', '+02:00');
    for (const since of [at, new Date(at), eastern]) expect(await tail(c, handle, 100, { since })).toEqual(expected);
    expect(await tail(c, handle, 100, { since: new Date(Date.now() + 3_600_000) })).toEqual([]);
    expect(await tail(c, handle, 100, { since: '2000-01-01T00:00:00Z' })).toEqual(all);
    expect(await tail(c, handle, 1, { since: '2000-01-01T00:00:00Z' })).toEqual(all.slice(-1));
  });

  test('a followed log since a time begins there and goes on with new lines', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    for (const text of ['before', 'then']) await say(c, spec, handle, text);
    const [{ at: since }] = (await tail(c, handle, 1)) as [LogLine];
    const abort = new AbortController();
    const lines: LogLine[] = [];
    const following = (async () => {
      for await (const line of c.runtime.logs(handle, { tail: 10, follow: true, since, signal: abort.signal })) {
        lines.push(line);
        if (line.text === 'after') abort.abort();
      }
    })();
    await until(
      async () => lines,
      (seen) => seen.some(({ text }) => text === 'then'),
    );
    await c.ask(spec, '/say?text=after');
    await following;
    expect(lines.filter((line) => line.at < since)).toEqual([]);
    expect(lines.map(({ text }) => text)).toEqual(['then', 'after']);
  });

  test('a log of one instance has its lines alone, and that of an unknown one is empty', async (current) => {
    const c = contract(current);
    const spec = c.spec({ instances: { min: 2, max: 2 } });
    const handle = await c.apply(spec);
    const { instances } = await c.runtime.observe(handle);
    const all = await until(
      () => tail(c, handle, 100),
      (lines) => lines.length === 2,
    );
    expect(instances).toHaveLength(2);
    for (const { name } of instances)
      expect(await tail(c, handle, 100, { instance: name })).toEqual(all.filter((line) => line.instance === name));
    expect(await tail(c, handle, 100, { instance: 'unknown' })).toEqual([]);
    expect(await tail(c, handle, 100, { instance: 'unknown', previous: true })).toEqual([]);
  });

  test('a followed log of one instance has no lines of the others', async (current) => {
    const c = contract(current);
    const spec = c.spec({ instances: { min: 2, max: 2 } });
    const handle = await c.apply(spec);
    const { instances } = await c.runtime.observe(handle);
    const chosen = instances[1]!.name;
    const abort = new AbortController();
    const followed: LogLine[] = [];
    const options = { tail: 10, follow: true, instance: chosen, signal: abort.signal };
    const following = (async () => {
      for await (const line of c.runtime.logs(handle, options)) followed.push(line);
    })();
    const bothHaveSpoken = async () => {
      await c.ask(spec, '/say?text=spoken');
      const lines = await tail(c, handle, 100);
      return new Set(lines.filter(({ text }) => text === 'spoken').map(({ instance }) => instance)).size === 2;
    };
    await until(bothHaveSpoken, (have) => have);
    await until(
      async () => followed,
      (lines) => lines.some(({ text }) => text === 'spoken'),
    );
    abort.abort();
    await following;
    expect(new Set(followed.map((line) => line.instance))).toEqual(new Set([chosen]));
  });

  test('the previous log is that of the run that ended last, and of an instance that never restarted it is empty', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const textsOf = async (options: Partial<LogOptions>) =>
      (await tail(c, handle, 100, options)).map(({ text }) => text);
    await say(c, spec, handle, 'first run');
    expect(await textsOf({ previous: true })).toEqual([]);
    await crash(c, spec, handle, 1);
    await say(c, spec, handle, 'second run');
    const [name] = (await c.runtime.observe(handle)).instances.map((instance) => instance.name);
    const previous = await tail(c, handle, 100, { previous: true });
    expect(previous.map(({ text }) => text)).toEqual(['listening, release 1', 'first run']);
    expect(await tail(c, handle, 100, { previous: true, instance: name })).toEqual(previous);
    expect(await tail(c, handle, 1, { previous: true })).toEqual(previous.slice(-1));
    expect(await tail(c, handle, 100, { previous: true, since: previous[1]!.at })).toEqual(
      previous.filter((line) => line.at >= previous[1]!.at),
    );
    expect(await textsOf({ previous: true, follow: true }), 'ends although it is followed').toContain('first run');
    expect(await textsOf({})).toContain('second run');
    await crash(c, spec, handle, 2);
    const later = await textsOf({ previous: true });
    expect(later).toContain('second run');
    expect(later).not.toContain('first run');
  });

  test('the previous log of an instance that waits to be started again is that of the run that crashed', async (current) => {
    const c = contract(current);
    if (c.runtime.pretends) return;
    // The first run serves until it is told to end; later ones end at once.
    const { mount, named } = mountFolder(options);
    const runs = JSON.stringify(`${named}/runs`);
    const script = `const { appendFileSync, readFileSync } = require('node:fs');
      appendFileSync(${runs}, 'x');
      const run = readFileSync(${runs}).length;
      console.log('run ' + run);
      if (run > 1) process.exit(3);
      const answer = (request, response) => request.url === '/exit' ? process.exit(7) : response.end('{}');
      require('node:http').createServer(answer).listen(Number(process.env.PORT ?? 8080));`;
    // In a volume, as some runtimes start a new instance from its image.
    const storage = [{ id: crypto.randomUUID(), mountPath: mount, sizeGib: 1 }];
    const spec = c.spec({ entrypoint: ['node', '-e'], arguments: [script], storage });
    const handle = await c.apply(spec);
    await c.get(spec, '/exit').catch(() => undefined);
    await until(
      async () => ({ all: await tail(c, handle, 100), previous: await tail(c, handle, 100, { previous: true }) }),
      // The crashed run is the last one: no later run has begun.
      ({ all, previous }) =>
        previous.length === 1 && /^run [2-9]$/.test(previous[0]!.text) && previous[0]!.text === all.at(-1)!.text,
      30_000,
    );
  });

  test('metrics, where the runtime has them, name each instance', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    if (!c.runtime.metrics) return;
    const [metrics, observation] = [await c.runtime.metrics(handle), await c.runtime.observe(handle)];
    expect(metrics.map((entry) => entry.instance)).toEqual(observation.instances.map((instance) => instance.name));
    const { cpuMilli, memoryMib } = spec.resources;
    for (const [n, entry] of metrics.entries()) {
      expect(entry.memoryBytes).toBeGreaterThan(0);
      expect(entry).toMatchObject({ cpuLimitMilli: cpuMilli, memoryLimitBytes: memoryMib * 2 ** 20, restarts: 0 });
      expect(entry.startedAt).toBe(observation.instances[n]!.startedAt);
      expect(entry.startedAt).not.toBeNull();
    }
    // The CPU time of a run only grows.
    const later = await c.runtime.metrics(handle);
    for (const [n, { cpuMs }] of metrics.entries())
      if (cpuMs !== undefined) expect(later[n]!.cpuMs).toBeGreaterThanOrEqual(cpuMs);
  });
}

/** Defines the tests of builds, for runtimes with `build`. */
export function describeBuilding(contract: ContractOf): void {
  test('a build tells what it does, takes arguments, and answers at once for the same key', async (current) => {
    const c = contract(current);
    if (!c.runtime.build) return;
    const identity = newIdentity(c.setup.installation);
    const spec = c.spec({ identity });
    const build = newBuild(identity, c.folder, { arguments: { FLAVOUR: 'sweet' } });
    const context = newContext();
    const first = await c.runtime.build(build, context);
    expect(first.cached).toBe(false);
    expect(context.lines.length).toBeGreaterThan(0);
    expect(await c.runtime.build(build, newContext())).toEqual({ image: first.image, cached: true });
    await c.apply({ ...spec, image: first.image });
    expect(await c.ask(spec, '/file?path=built.txt')).toEqual({ content: 'flavour sweet\n' });
  });

  test('a build without its Dockerfile fails and names the path', async (current) => {
    const c = contract(current);
    if (!c.runtime.build) return;
    const build = newBuild(newIdentity(c.setup.installation), c.folder, { dockerfilePath: 'missing/Dockerfile' });
    await expect(c.runtime.build(build, newContext())).rejects.toMatchObject({
      name: 'RuntimeError',
      code: 'build_failed',
      message: expect.stringContaining('missing/Dockerfile'),
    });
  });

  test('a Dockerfile outside the repository is refused', async (current) => {
    const c = contract(current);
    if (!c.runtime.build) return;
    const build = newBuild(newIdentity(c.setup.installation), c.folder, { dockerfilePath: '../../etc/passwd' });
    await expect(c.runtime.build(build, newContext())).rejects.toMatchObject({ name: 'RuntimeError' });
  });

  test('an aborted build throws', async (current) => {
    const c = contract(current);
    if (!c.runtime.build) return;
    const context = newContext(AbortSignal.abort(new Error('cancelled')));
    const build = newBuild(newIdentity(c.setup.installation), c.folder);
    await expect(c.runtime.build(build, context)).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
  });
}

async function tail(c: Contract, handle: Handle, count: number, options: Partial<LogOptions> = {}): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const signal = new AbortController().signal;
  for await (const line of c.runtime.logs(handle, { tail: count, follow: false, signal, ...options })) lines.push(line);
  return lines;
}

/** Makes the only instance write a line and waits until the log ends with it. The next line has a later time. */
async function say(c: Contract, spec: WorkloadSpec, handle: Handle, text: string): Promise<void> {
  await c.ask(spec, `/say?text=${encodeURIComponent(text)}`);
  await until(
    () => tail(c, handle, 1),
    ([last]) => last?.text === text && Date.now() > Date.parse(last.at),
  );
}

/** Makes the only instance end with status 7, and waits until it serves again. */
async function crash(c: Contract, spec: WorkloadSpec, handle: Handle, restarts: number): Promise<void> {
  await c.ask(spec, '/exit?code=7');
  await until(
    () => c.runtime.observe(handle),
    ({ state, instances }) => state === 'running' && instances[0]!.restarts >= restarts,
    30_000,
  );
  await c.served(spec);
}
