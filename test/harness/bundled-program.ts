import path from 'node:path';

const SCRIPT = path.join(import.meta.dirname, '../../scripts/bundle.mjs');

/** Returns the path of the program as `npm start` runs it: bundled from the sources as they are now. Starts of it take half the time. */
export async function bundledProgram(): Promise<string> {
  const { bundleProgram } = (await import(SCRIPT)) as { bundleProgram(): Promise<string> };
  return bundleProgram();
}
