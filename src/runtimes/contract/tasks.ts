import { expect, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { mountFolder, until } from '#runtimes/contract/setup.ts';
import type { ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';
import type { TaskSpec } from '#runtimes/runtime.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** Returns the lines that the command wrote, recognized by their pattern; lines of the runtime are ignored. */
const told = (lines: string[], pattern: RegExp) => lines.filter((line) => pattern.test(line));
const processOf = (lines: string[]) => told(lines, /^process /);
const another = ({ identity }: TaskSpec, name: string) => ({ identity, name });

/** Defines the tests of the end of `run`, and that no execution starts twice. */
export function describeTaskEnds(contract: ContractOf, options: ContractOptions): void {
  test('a command that ends tells its exit status and when it began and ended', async (current) => {
    const c = contract(current);
    const spec = c.task([{ exit: 7 }]);
    expect(c.runtime.refusals(spec)).toEqual([]);
    const { end } = await c.run(spec);
    expect(end).toEqual({
      reason: 'exited',
      exitCode: 7,
      signal: null,
      startedAt: expect.stringMatching(TIME),
      endedAt: expect.stringMatching(TIME),
      output: null,
    });
    expect(Date.parse(end.startedAt)).toBeGreaterThan(Date.now() - 60_000);
    expect(end.endedAt >= end.startedAt).toBe(true);
  });

  test('what it writes is told line by line, once each and in the order of its stream', async (current) => {
    const c = contract(current);
    const numbers = Array.from({ length: 60 }, (_, n) => n);
    const steps = numbers.flatMap((n) => [{ say: `out ${n}` }, { say: `err ${n}`, stream: 'stderr' as const }]);
    const { end, lines } = await c.run(c.task([...steps, { say: 'out of umlauts: grüße' }]));
    expect(end).toMatchObject({ exitCode: 0 });
    expect(told(lines, /^out \d/)).toEqual(numbers.map((n) => `out ${n}`));
    expect(told(lines, /^err \d/)).toEqual(numbers.map((n) => `err ${n}`));
    expect(told(lines, /^out of/)).toEqual(['out of umlauts: grüße']);
  });

  test('what prepares it is done before it begins, once, and its failure begins nothing', async (current) => {
    const c = contract(current);
    const spec = c.task([{ say: 'begun' }]);
    const context = newContext();
    const failing = async () => Promise.reject(new Error('not to be prepared'));
    await expect(c.runtime.run!(spec, { ...context, prepare: failing })).rejects.toThrow('not to be prepared');
    expect(told(context.lines, /^begun$/)).toEqual([]);
    const prepare = async () => context.log('prepared');
    const end = await c.runtime.run!(spec, { ...context, prepare });
    expect(told(context.lines, /^(prepared|begun)$/)).toEqual(['prepared', 'begun']);
    expect(await c.runtime.run!(spec, { ...context, prepare })).toEqual(end);
    expect(told(context.lines, /^prepared$/)).toHaveLength(1);
  });

  test('its lines come while it runs', async (current) => {
    const c = contract(current);
    const abort = new AbortController();
    const context = newContext(abort.signal);
    const running = c.runtime.run!(c.task([{ say: 'begun' }, { wait: 60_000 }]), context);
    const aborted = expect(running).rejects.toMatchObject({ code: 'aborted' });
    await until(
      async () => context.lines,
      (lines) => lines.includes('begun'),
    );
    abort.abort(new Error('cancelled'));
    await aborted;
  });

  test('when its time is over it is ended with its children, and that is told', async (current) => {
    const c = contract(current);
    const storage = [{ id: crypto.randomUUID(), mountPath: mountFolder(options).mount, sizeGib: 1 }];
    const count = `${mountFolder(options).named}/count`;
    const spec = c.task([{ countInChild: count }, { say: 'on it' }, { wait: 60_000 }, { say: 'done' }], {
      storage,
      // The program must have begun by then, on a busy machine too.
      timeoutSeconds: 10,
    });
    const started = Date.now();
    const { end, lines } = await c.run(spec);
    expect(end).toMatchObject({ reason: 'timeout', output: null });
    expect(Date.now() - started).toBeLessThan(40_000);
    expect(told(lines, /^(on it|done)$/)).toEqual(['on it']);
    const look = [{ read: count }, { wait: 400 }, { read: count }];
    const after = await c.run(c.task(look, { ...another(spec, 'look'), storage }));
    const counts = told(after.lines, /^"\d+"$/);
    expect(counts).toHaveLength(2);
    expect(counts[0]).toBe(counts[1]);
    expect((await c.run(spec)).end, 'asked again').toEqual(end);
  });

  test('aborted it is ended, and is not begun again when it is asked for again', async (current) => {
    const c = contract(current);
    const spec = c.task([{ process: true }, { wait: 60_000 }]);
    const abort = new AbortController();
    const context = newContext(abort.signal);
    const running = c.runtime.run!(spec, context);
    const aborted = expect(running).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
    await until(
      async () => context.lines,
      (lines) => processOf(lines).length > 0,
    );
    abort.abort(new Error('cancelled'));
    await aborted;
    const { end, lines } = await c.run(spec);
    expect(processOf(lines)).toEqual(processOf(context.lines));
    expect(end).toMatchObject({ reason: 'exited', output: null });
    expect(end.exitCode).not.toBe(0);
  });

  test('a signal that is aborted already begins nothing', async (current) => {
    const c = contract(current);
    const spec = c.task([{ process: true }]);
    const context = newContext(AbortSignal.abort(new Error('cancelled')));
    await expect(c.runtime.run!(spec, context)).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
    expect(context.lines).toEqual([]);
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
  });

  test('the same execution asked for by another process is taken over while it runs', async (current) => {
    const c = contract(current);
    const spec = c.task([{ process: true }, { wait: 2500 }, { say: 'late' }, { exit: 3 }]);
    const first = newContext();
    const running = c.runtime.run!(spec, first);
    await until(
      async () => first.lines,
      (lines) => processOf(lines).length > 0,
    );
    const other = await c.subject.reopen();
    try {
      const { end, lines } = await c.run(spec, other);
      expect(end).toMatchObject({ reason: 'exited', exitCode: 3 });
      expect(end).toEqual(await running);
      expect(told(lines, /^late$/)).toEqual(['late']);
      expect(processOf(lines)).toEqual(processOf(first.lines));
    } finally {
      await other.close();
    }
  });

  test('one that ended meanwhile tells its end, its output and all of its lines again', async (current) => {
    const c = contract(current);
    const spec = c.task([{ process: true }, { write: 'out.txt', text: 'result' }], { outputPath: '/app/out.txt' });
    const { end, lines } = await c.run(spec);
    expect(end).toMatchObject({ exitCode: 0, output: 'result' });
    const other = await c.subject.reopen();
    try {
      const again = await c.run(spec, other);
      expect(again.end).toEqual(end);
      expect(processOf(again.lines)).toEqual(processOf(lines));
    } finally {
      await other.close();
    }
  });

  test('another name, another generation or another service is another execution', async (current) => {
    const c = contract(current);
    const spec = c.task([{ process: true }]);
    const { identity } = spec;
    const others = [
      { ...spec, name: `${spec.name}-2` },
      { ...spec, identity: { ...identity, generation: identity.generation + 1 } },
      c.task([{ process: true }], { name: spec.name }),
    ];
    const seen = new Set<string>();
    for (const each of [spec, ...others]) {
      const { end, lines } = await c.run(each);
      expect(end, lines.join('\n')).toMatchObject({ reason: 'exited', exitCode: 0 });
      for (const line of processOf(lines)) seen.add(line);
    }
    expect(seen.size).toBe(4);
  });

  test('executions of one service run side by side', async (current) => {
    const c = contract(current);
    const slow = c.task([{ wait: 1500 }, { process: true }]);
    const ends = await Promise.all([slow, { ...slow, name: 'second' }].map((spec) => c.run(spec)));
    expect(ends.map(({ end }) => end.exitCode)).toEqual([0, 0]);
    expect(new Set(ends.flatMap(({ lines }) => processOf(lines))).size).toBe(2);
  });

  test('they are no workloads: nothing lists them', async (current) => {
    const c = contract(current);
    const spec = c.task([]);
    await c.run(spec);
    const found = (await c.runtime.list?.()) ?? [];
    expect(found.filter(({ identity }) => identity.serviceId === spec.identity.serviceId)).toEqual([]);
  });

  test('removed executions are gone, those of other names stay, and storage stays', async (current) => {
    const c = contract(current);
    const storage = [{ id: crypto.randomUUID(), mountPath: mountFolder(options).mount, sizeGib: 1 }];
    const note = `${mountFolder(options).named}/note`;
    const spec = c.task([{ process: true }, { write: note, text: 'kept' }], { storage });
    const other = c.task([{ process: true }], another(spec, 'other'));
    const before = [processOf((await c.run(spec)).lines), processOf((await c.run(other)).lines)];
    for (const _time of [1, 2]) await c.runtime.removeTasks!(spec.identity, [spec.name]);
    expect(processOf((await c.run(other)).lines)).toEqual(before[1]);
    expect(processOf((await c.run(spec)).lines)).not.toEqual(before[0]);
    for (const _time of [1, 2]) await c.runtime.removeTasks!(spec.identity, [spec.name, other.name]);
    const read = await c.run(c.task([{ read: note }], { ...another(spec, 'read'), storage }));
    expect(told(read.lines, /^"/)).toEqual(['"kept"']);
    await c.runtime.removeTasks!(newIdentity(c.setup.installation), [spec.name]);
  });

  test('one that runs is ended by its removal, which is no good end', async (current) => {
    const c = contract(current);
    const spec = c.task([{ say: 'begun' }, { wait: 60_000 }]);
    const context = newContext();
    const running = c.runtime.run!(spec, context);
    await until(
      async () => context.lines,
      (lines) => lines.includes('begun'),
    );
    await c.runtime.removeTasks!(spec.identity, [spec.name]);
    expect(await running).toMatchObject({
      reason: expect.stringMatching(/^(lost|exited)$/),
      exitCode: null,
      output: null,
    });
  });

  test('nothing is left of a service that is removed, running executions included', async (current) => {
    const c = contract(current);
    const storage = [{ id: crypto.randomUUID(), mountPath: mountFolder(options).mount, sizeGib: 1 }];
    const files = [{ path: `${mountFolder(options).mount}-settings`, content: 'of a file' }];
    const spec = c.task([{ say: 'begun' }, { wait: 60_000 }], {
      storage,
      files: options.without?.absolutePaths ? [] : files,
    });
    await c.run(c.task([{ exit: 1 }], another(spec, 'ended')));
    const context = newContext();
    const ended = expect(c.runtime.run!(spec, context)).resolves.toMatchObject({
      reason: expect.stringMatching(/^(lost|exited)$/),
      exitCode: null,
      output: null,
    });
    await until(
      async () => context.lines,
      (lines) => lines.includes('begun'),
    );
    expect(await c.subject.leftovers(spec.identity)).not.toEqual([]);
    await c.runtime.remove(spec.identity, null, newContext());
    await ended;
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
  });
}

/** Defines the tests of a command's environment and restrictions. */
export function describeTasks(contract: ContractOf, options: ContractOptions): void {
  test('variables, files, arguments and an entry point are as a workload has them', async (current) => {
    const c = contract(current);
    const { mount, named } = mountFolder(options);
    const steps = [
      { variable: 'OWN' },
      { variable: 'FROM_IMAGE' },
      { variable: 'CONTRACT_MARK' },
      { read: `${named}/settings.json` },
      { arguments: true as const },
    ];
    process.env['CONTRACT_MARK'] = 'of the control plane';
    try {
      const { end, lines } = await c.run(
        c.task([], {
          entrypoint: ['node', 'task.mjs'],
          arguments: ['two words', '$HOME', JSON.stringify(steps)],
          environment: { OWN: 'first\nsecond "grüße"' },
          files: [{ path: `${mount}/settings.json`, content: '{"a": 1}' }],
        }),
      );
      expect(end).toMatchObject({ exitCode: 0 });
      const values = told(lines, /^("|null|\[)/).map((line) => JSON.parse(line) as unknown);
      expect(values).toEqual(['first\nsecond "grüße"', 'yes', null, '{"a": 1}', ['two words', '$HOME']]);
    } finally {
      delete process.env['CONTRACT_MARK'];
    }
  });

  test('the output file is read at a good end, in a folder that is there for it', async (current) => {
    const c = contract(current);
    const outputPath = '/app/results/output.json';
    const write = { write: 'results/output.json', text: '{"url": {"value": "grüße"}}' };
    const spec = c.task([write], { outputPath });
    const run = async (steps: Parameters<typeof c.task>[0], name: string) =>
      (await c.run(c.task(steps, { ...another(spec, name), outputPath }))).end;
    expect((await c.run(spec)).end).toMatchObject({ exitCode: 0, output: write.text });
    expect(await run([], 'missing')).toMatchObject({ exitCode: 0, output: null });
    expect(await run([write, { exit: 1 }], 'failed')).toMatchObject({ exitCode: 1, output: null });
  });

  const withLarge = test.skipIf(options.without?.largeOutputs);
  withLarge('an output file of 1 MiB is read, a larger one is refused with both sizes', async (current) => {
    const c = contract(current);
    const outputPath = '/app/output.json';
    const spec = c.task([{ fill: 'output.json', bytes: 2 ** 20 }], { outputPath });
    expect((await c.run(spec)).end.output).toHaveLength(2 ** 20);
    const larger = c.task([{ fill: 'output.json', bytes: 2 ** 20 + 1 }], { ...another(spec, 'larger'), outputPath });
    await expect(c.run(larger)).rejects.toMatchObject({
      name: 'RuntimeError',
      code: 'failed',
      message: expect.stringMatching(/\/app\/output\.json.*1048577.*1 MiB/),
    });
  });

  test.skipIf(options.without?.siblings)(
    'siblings of the environment are reached by their internal names',
    async (current) => {
      const c = contract(current);
      const sibling = c.spec();
      await c.apply(sibling);
      const identity = { ...newIdentity(c.setup.installation), environmentId: sibling.identity.environmentId };
      const url = `http://${sibling.hostname}:8080/env?name=RELEASE`;
      const { end, lines } = await c.run(c.task([{ fetch: url }], { identity }));
      expect(lines).toContain('{"value":"1"}');
      expect(end).toMatchObject({ exitCode: 0 });
    },
  );

  test.skipIf(options.without?.programs)(
    'a program that is not there is told without its secret arguments',
    async (current) => {
      const c = contract(current);
      const secret = 'hunter22-of-nobody';
      const spec = c.task([], { entrypoint: ['not-there-at-all', secret], arguments: [], secrets: [secret] });
      const context = newContext();
      const result = await c.runtime.run!(spec, context).then(
        (end) => String(end.exitCode),
        (error: Error) => `${error.name} ${error.message}`,
      );
      expect(result).toMatch(/^(127|RuntimeError .*not-there-at-all[^]*)$/);
      expect(`${result}\n${context.lines.join('\n')}`).not.toContain(secret);
    },
  );
}
