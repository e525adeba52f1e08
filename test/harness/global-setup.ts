import type {} from 'vitest';
import type { TestProject } from 'vitest/node';
import type { ClientConfig } from 'pg';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { makeTemplate, startTestServer } from '#test/harness/database.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const HELLO = path.join(import.meta.dirname, '../../examples/hello');

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection to the PostgreSQL of this run. */
    postgres: ClientConfig;
    /** Name of the migrated database that test files clone. */
    template: string;
    /** URL of a git repository with the example application and nothing else. */
    example: string;
  }
}

/** Provides one PostgreSQL for a whole run, and the example in a git repository. Each test file clones the migrated template database. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer();
  project.provide('postgres', server.config);
  project.provide('template', await makeTemplate(server.config));
  const repositories = makeRepositoryRoot();
  const example = repositories.make('example');
  example.commit(
    Object.fromEntries(readdirSync(HELLO).map((file) => [file, readFileSync(path.join(HELLO, file), 'utf8')])),
  );
  project.provide('example', example.url);
  return async () => {
    await server.stop();
    repositories.remove();
  };
}
