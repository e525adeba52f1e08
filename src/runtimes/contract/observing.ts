import { expect, test } from 'vitest';
import type { Handle, LogLine } from '#runtimes/runtime.ts';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { Contract, ContractOptions } from '#runtimes/contract/setup.ts';

/** Defines the tests of reports, logs and metrics. */
export function describeObserving(contract: () => Contract, options: ContractOptions): void {
  test('says what it is and that it can be used', async () => {
    const report = await contract().runtime.check();
    expect(report).toMatchObject({ ok: true, description: expect.stringMatching(/\w/) });
  });

  test('a spec that can run here is not refused', async () => {
    const c = contract();
    expect(c.runtime.refusals(c.spec())).toEqual([]);
  });

  test('the last lines of the log come oldest first, from both streams', async () => {
    const c = contract();
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

  test('a followed log brings new lines until it is aborted', async () => {
    const c = contract();
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

  test('the log of what is gone is empty', async () => {
    const c = contract();
    const spec = c.spec();
    const handle = await c.apply(spec);
    await c.runtime.remove(spec.identity, handle, newContext());
    expect(await tail(c, handle, 10)).toEqual([]);
  });

  test('metrics, where the runtime has them, name each instance', async () => {
    const c = contract();
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
  });
}

/** Defines the tests of builds, for runtimes with `build`. */
export function describeBuilding(contract: () => Contract): void {
  test('a build tells what it does, takes arguments, and answers at once for the same key', async () => {
    const c = contract();
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

  test('a build without its Dockerfile fails and names the path', async () => {
    const c = contract();
    if (!c.runtime.build) return;
    const build = newBuild(newIdentity(c.setup.installation), c.folder, { dockerfilePath: 'missing/Dockerfile' });
    await expect(c.runtime.build(build, newContext())).rejects.toMatchObject({
      name: 'RuntimeError',
      code: 'build_failed',
      message: expect.stringContaining('missing/Dockerfile'),
    });
  });

  test('a Dockerfile outside the repository is refused', async () => {
    const c = contract();
    if (!c.runtime.build) return;
    const build = newBuild(newIdentity(c.setup.installation), c.folder, { dockerfilePath: '../../etc/passwd' });
    await expect(c.runtime.build(build, newContext())).rejects.toMatchObject({ name: 'RuntimeError' });
  });

  test('an aborted build throws', async () => {
    const c = contract();
    if (!c.runtime.build) return;
    const context = newContext(AbortSignal.abort(new Error('cancelled')));
    const build = newBuild(newIdentity(c.setup.installation), c.folder);
    await expect(c.runtime.build(build, context)).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
  });
}

async function tail(c: Contract, handle: Handle, count: number): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const signal = new AbortController().signal;
  for await (const line of c.runtime.logs(handle, { tail: count, follow: false, signal })) lines.push(line);
  return lines;
}
