import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { BuildSpec, RuntimeContext } from '#runtimes/runtime.ts';
import { assertNotAborted } from '#runtimes/fake/faults.ts';
import type { FakeImage, FakeStore } from '#runtimes/fake/store.ts';

/**
 * Pretends to build: reads the Dockerfile and logs its instructions. ARG, ENV and WORKDIR are kept, `RUN echo "…" > path` creates that
 * file, and `RUN exit n` or `RUN false` fails; any other instruction is only logged. An empty folder stands for any repository.
 */
export async function pretendBuild(
  store: FakeStore,
  spec: BuildSpec,
  context: RuntimeContext,
): Promise<{ image: string; cached: boolean }> {
  const image = `fake:${spec.identity.serviceId}/${spec.cacheKey}`;
  if (store.readImage(image)) return { image, cached: true };
  const path = join(spec.rootPath, spec.dockerfilePath);
  const file = resolve(spec.directory, `./${path}`);
  if (relative(spec.directory, file).startsWith('..'))
    throw new RuntimeError('refused', `The Dockerfile ${path} lies outside the repository.`);
  const made: FakeImage = { serviceId: spec.identity.serviceId, folder: '/', files: {}, environment: {} };
  if ((await readdir(spec.directory)).length === 0) {
    context.log('The fake runtime builds nothing.');
    store.writeImage(image, made);
    return { image, cached: false };
  }
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new RuntimeError('build_failed', `The Dockerfile ${spec.dockerfilePath} cannot be read.`, cause);
  });
  const lines = text.split('\n').filter((line) => /^\s*[A-Z]+\s/.test(line));
  const values: Record<string, string> = {};
  for (const [index, line] of lines.entries()) {
    assertNotAborted(context.signal);
    context.log(`Step ${index + 1}/${lines.length}: ${line}`);
    runInstruction(line, made, values, spec.arguments);
  }
  context.log('The fake runtime ran none of it.');
  store.writeImage(image, made);
  return { image, cached: false };
}

function runInstruction(
  line: string,
  made: FakeImage,
  values: Record<string, string>,
  given: Record<string, string>,
): void {
  const [, instruction, rest = ''] = /^\s*([A-Z]+)\s+(.*)$/.exec(line) ?? [];
  const [, name, value = ''] = /^(\w+)=?(.*)$/.exec(rest) ?? [];
  if (instruction === 'ARG' && name) values[name] = given[name] ?? value;
  if (instruction === 'ENV' && name) made.environment[name] = value;
  if (instruction === 'WORKDIR') made.folder = rest;
  if (instruction !== 'RUN') return;
  if (/^(exit [1-9]|false$)/.test(rest)) throw new RuntimeError('build_failed', `The build failed at: ${line}`);
  const echo = /^echo "([^"]*)" > (\S+)$/.exec(rest);
  if (echo) made.files[echo[2]!] = `${echo[1]!.replace(/\$(\w+)/g, (_, key: string) => values[key] ?? '')}\n`;
}
