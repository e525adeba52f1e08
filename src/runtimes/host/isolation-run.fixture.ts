/**
 * Builds and runs the attempts as the present account: `node isolation-run.fixture.ts <folder of data> <repository> <mode> <hidden>…`.
 * Prints one line of JSON: `{mode, build, instance}`, the last two as `Seen`.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { newBuild, newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createHostRuntime } from '#runtimes/host/index.ts';
import { seenIn } from '#runtimes/host/isolation-attempts.fixture.ts';
import type { Handle, Runtime } from '#runtimes/runtime.ts';

const [dataDir, repository, mode, ...hidden] = process.argv.slice(2) as [string, string, 'auto' | 'plain', ...string[]];
const installation = randomUUID();
const runtime = await createHostRuntime({
  dataDir,
  installation,
  router: new MemoryRouter(),
  log: () => undefined,
  mode,
  hidden,
});
const identity = newIdentity(installation);
try {
  const context = newContext();
  const { image } = await runtime.build!(newBuild(identity, repository), context);
  const spec = newSpec(identity, image, { readiness: null, ports: [], routes: [] });
  const handle = await runtime.submit(spec, newContext());
  const { description } = await runtime.check();
  const found = { mode: description, build: seenIn(context.lines.join('\n')), instance: seenIn(await result(handle)) };
  console.log(JSON.stringify(found));
} finally {
  await runtime.remove(identity, null, newContext());
  await runtime.close();
}

async function result(handle: Handle): Promise<string> {
  for (let waited = 0; ; waited += 50) {
    const lines = (await tail(runtime, handle)).join('\n');
    if (/^RESULT/m.test(lines)) return lines;
    if (waited > 15_000) throw new Error(`no result: ${lines}`);
    await sleep(50);
  }
}

async function tail(of: Runtime, handle: Handle): Promise<string[]> {
  const texts: string[] = [];
  for await (const { text } of of.logs(handle, { tail: 100, follow: false, signal: new AbortController().signal }))
    texts.push(text);
  return texts;
}
