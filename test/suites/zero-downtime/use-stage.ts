import { afterAll, beforeAll } from 'vitest';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { Installation } from './program.ts';
import { firstRelease, type Stage } from './scenarios.ts';
import { Service } from './service.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';

/** Provides an installation with a serving application for the tests of a file. `settings` is called when they begin. */
export function useStage(settings: () => Record<string, string>): () => Stage {
  const repositories = makeRepositoryRoot();
  let installation: Installation | undefined;
  let stage: Stage | undefined;

  beforeAll(async () => {
    installation = await Installation.make({
      QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
      ...MADE_IMAGES,
      ...settings(),
    });
    const program = await installation.start();
    const service = await Service.make(installation, repositories.make());
    stage = await firstRelease({ installation, program, service });
  }, 120_000);

  afterAll(async () => {
    // A failed test may leave anything: everything is stopped, and an error of the removal is reported.
    try {
      await stage?.service.remove();
    } finally {
      await installation?.close().finally(() => repositories.remove());
    }
  }, 120_000);

  return () => stage!;
}
