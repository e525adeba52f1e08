import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createCaddyRouter, stopCaddyProxy, type CaddyOptions, type CaddyRouter } from '#runtimes/proxy/caddy/index.ts';
import { findCaddy, type CaddyProgram } from '#runtimes/proxy/caddy/program.ts';
import { readShimLog } from '#runtimes/tools/shim/index.ts';

/** Returns the Caddy of the tests: the machine's, or the one that CADDY names. */
async function testCaddy(): Promise<CaddyProgram> {
  const program = await findCaddy(process.env['CADDY'] || 'caddy');
  if (!program) throw new Error('These tests take the package caddy.');
  return program;
}

/** Starts Caddy in a folder on a free port. */
export async function startCaddyRouter(directory: string, options: Partial<CaddyOptions> = {}): Promise<CaddyRouter> {
  mkdirSync(directory, { recursive: true });
  return createCaddyRouter({
    directory,
    program: await testCaddy(),
    host: '127.0.0.1',
    port: 0,
    https: { port: 1, directoryUrl: 'https://127.0.0.1:1/dir', email: '', rootsFile: '' },
    trustedProxies: [],
    log: () => undefined,
    ...options,
  });
}

/**
 * Panics of version 2.6 that end only the connection or call of the visitor that caused them
 * (docs/decisions/0022-caddy-serves-what-strangers-reach.md): an upgrade to h2c whose connection ends before the preface of HTTP/2, and an
 * answer with a status below 100.
 */
const KNOWN_PANICS = [
  /Timer\)\.Reset\(.*closeAllStreamsOnConnClose\(.*h2cHandler\.ServeHTTP\(/,
  /panic serving [^ ]*: invalid WriteHeader code \d{1,2}\\n/,
];

/** Returns the lines in which Caddy reported its own crashes: of the process, or with `reportsServer` of a single request. */
export async function faultsOf(directory: string): Promise<string[]> {
  const folder = `${directory}/caddy`;
  const reports = readdirSync(folder)
    .filter((name) => /^server\b.*\.log$/.test(name))
    .flatMap((name) => readFileSync(`${folder}/${name}`, 'utf8').split('\n'));
  const printed = (await readShimLog(`${folder}/shim`, 1000)).map(({ text }) => text);
  return [...printed, ...reports].filter(
    (text) => /panic|fatal error|goroutine \d+ \[/.test(text) && !KNOWN_PANICS.some((known) => known.test(text)),
  );
}

export { stopCaddyProxy };
