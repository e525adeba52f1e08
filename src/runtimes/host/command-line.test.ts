import { expect, test } from 'vitest';
import { commandLine } from '#runtimes/host/command-line.ts';
import type { ImageConfig } from '#runtimes/host/images.ts';
import type { ProgramSpec } from '#runtimes/runtime.ts';

const lineOf = (spec: { entrypoint?: string[]; arguments?: string[] }, image: Partial<ImageConfig> = {}) =>
  commandLine(
    { entrypoint: [], arguments: [], ...spec } as Partial<ProgramSpec> as ProgramSpec,
    { entrypoint: [], command: [], ...image } as Partial<ImageConfig> as ImageConfig,
  );

test('a Dockerfile with neither CMD nor ENTRYPOINT is refused with the reason, that FROM is not pulled, and what to do', () => {
  expect(() => lineOf({})).toThrow(
    expect.objectContaining({
      code: 'refused',
      message: expect.stringMatching(
        /neither CMD nor ENTRYPOINT.* FROM .*the host runtime pulls no images\. Add a CMD, .*arguments, or use a docker cluster/,
      ),
    }),
  );
  expect(lineOf({ arguments: ['node', 'server.mjs'] })).toEqual(['node', 'server.mjs']);
});

test('an entry point of the service leaves the command of the image out, arguments replace the command only', () => {
  const image = { entrypoint: ['/entry'], command: ['serve'] };
  expect(lineOf({}, image)).toEqual(['/entry', 'serve']);
  expect(lineOf({ arguments: ['check'] }, image)).toEqual(['/entry', 'check']);
  expect(lineOf({ entrypoint: ['/own'] }, image)).toEqual(['/own']);
});
