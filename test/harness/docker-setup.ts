import type {} from 'vitest';
import type { TestProject } from 'vitest/node';
import { findOrStartEngine, stopEngine } from '#test/harness/docker-engine.ts';
import type { TestEngine } from '#test/harness/docker-engine.ts';
import { ensureBaseImages, removeImages } from '#test/harness/docker-images.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Docker Engine of this run. */
    docker: TestEngine;
  }
}

/** Provides a Docker Engine with base images for a whole run of the project `docker`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const engine = await findOrStartEngine(process.env);
  const made = await ensureBaseImages(engine.socketPath);
  project.provide('docker', engine);
  return async () => {
    if (engine.directory === null) await removeImages(engine.socketPath, made);
    await stopEngine(engine);
  };
}
