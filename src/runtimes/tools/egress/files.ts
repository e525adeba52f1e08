import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** Source files of the program, below `src`. */
const SOURCES = [
  'kernel/addresses.ts',
  'kernel/hop-by-hop.ts',
  'kernel/node-http.ts',
  'runtimes/tools/egress/rules.ts',
  'runtimes/tools/egress/proxy.ts',
  'runtimes/tools/egress/program.ts',
];
/** Only library of the program. */
const LIBRARY = 'ipaddr.js';
const PACKAGE = {
  type: 'module',
  imports: { '#kernel/*': './src/kernel/*', '#runtimes/*': './src/runtimes/*' },
};

export const EGRESS_PROGRAM = 'src/runtimes/tools/egress/program.ts';

/** Returns the proxy as files with their paths. They need only Node on their machine (24 or later, which reads TypeScript). */
export async function egressFiles(): Promise<{ path: string; content: string }[]> {
  const base = new URL('../../../', import.meta.url);
  const own = SOURCES.map(async (name) => ({
    path: `src/${name}`,
    content: await readFile(new URL(name, base), 'utf8'),
  }));
  const library = createRequire(import.meta.url).resolve(LIBRARY);
  return [
    { path: 'package.json', content: JSON.stringify(PACKAGE) },
    { path: `node_modules/${LIBRARY}/index.js`, content: await readFile(library, 'utf8') },
    ...(await Promise.all(own)),
  ];
}
