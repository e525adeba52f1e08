import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '../..');

type BundleProgram = (entry?: string, folders?: string[]) => Promise<string>;

const load = async () =>
  ((await import(path.join(ROOT, 'scripts/bundle.mjs'))) as { bundleProgram: BundleProgram }).bundleProgram;

/** Returns the path of the program as `npm start` runs it: bundled from the sources as they are now. Starts of it take half the time. */
export const bundledProgram = async (): Promise<string> => (await load())();

/** Returns the path of a program of the tests, bundled with the sources that it runs. */
export const bundledFixture = async (file: string): Promise<string> =>
  (await load())(file, [path.join(ROOT, 'src'), path.join(ROOT, 'test')]);
