import type {} from 'vitest';
import type { TestProject } from 'vitest/node';
import type { ClientConfig } from 'pg';
import { makeTemplate, startTestServer } from '#test/harness/database.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** How to reach the PostgreSQL of this run. */
    postgres: ClientConfig;
    /** Name of the migrated database that test files clone. */
    template: string;
  }
}

/** One PostgreSQL for a whole run; each test file clones the migrated template. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer();
  project.provide('postgres', server.config);
  project.provide('template', await makeTemplate(server.config));
  return () => server.stop();
}
