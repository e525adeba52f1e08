import { chmodSync, globSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeClone, missingLine, ROOT, runInShell, shellBlocks, type Session } from '#test/harness/pages.ts';
import { Program } from '#test/harness/program.ts';

const FIRST = 'docs/first-application.md';
const PAGES = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT, exclude: ['docs/decisions'] }).toSorted()].filter(
  (page) => page !== FIRST && shellBlocks(page).some(({ notRun }) => notRun === undefined),
);
const TIMEOUT_MS = 300_000;
const VARIABLES = ['PROJECT', 'ENVIRONMENT', 'APPLICATION'];

let clone: string;
let program: Program;
let settings: Record<string, string>;
/** Shell assignments of the ids that the first page leaves. */
let ids = '';

beforeAll(async () => {
  clone = realpathSync(mkdtempSync(path.join(tmpdir(), 'qd-pages-')));
  chmodSync(clone, 0o755);
  makeClone(clone);
  program = await Program.start({
    QUARTERDECK_RUNTIME: 'host',
    QUARTERDECK_LOCAL_GIT_ROOTS: clone,
    QUARTERDECK_GIT_POLL_INTERVAL: '2',
  });
  const { port, operationsPort, proxyPort } = program.running.settings;
  settings = {
    QUARTERDECK_DATA_DIR: program.dataDir,
    QUARTERDECK_RUNTIME: 'host',
    QUARTERDECK_PORT: String(port),
    QUARTERDECK_OPERATIONS_PORT: String(operationsPort),
    QUARTERDECK_PROXY_PORT: String(proxyPort),
    QD: program.running.url!,
  };
}, 120_000);

afterAll(async () => {
  await program?.close();
  rmSync(clone, { recursive: true, force: true });
});

/** Runs the runnable blocks of a page, with the ids of the first page, on the ports of this service; checks their output. */
async function runPage(page: string, after = ''): Promise<Session> {
  const blocks = shellBlocks(page)
    .filter(({ notRun }) => notRun === undefined)
    .map((block) => ({
      ...block,
      commands: block.commands.replaceAll(
        /127\.0\.0\.1:808([0-2])/g,
        (_, port: string) =>
          new URL(
            `http://127.0.0.1:${[settings.QUARTERDECK_PORT, settings.QUARTERDECK_OPERATIONS_PORT, settings.QUARTERDECK_PROXY_PORT][Number(port)]}`,
          ).host,
      ),
    }));
  const before = page === FIRST ? '' : `. examples/api.sh\n${ids}`;
  const session = await runInShell(blocks, { cwd: clone, env: settings, before, after, timeoutMs: TIMEOUT_MS });
  expect(session.failure).toBeUndefined();
  for (const [index, { line, prints }] of blocks.entries())
    if (prints !== undefined)
      expect(
        missingLine(prints, session.outputs[index] ?? ''),
        `${page}:${line} prints:\n${session.outputs[index]}`,
      ).toBeUndefined();
  return session;
}

beforeAll(async () => {
  const print = VARIABLES.map((name) => `echo "${name}=$${name}"`).join('\n');
  ids = (await runPage(FIRST, print)).outputs.at(-1)!;
  expect(ids).toMatch(/^PROJECT=[0-9a-f-]{36}\nENVIRONMENT=[0-9a-f-]{36}\nAPPLICATION=[0-9a-f-]{36}\n$/);
}, TIMEOUT_MS);

describe.each(PAGES)('%s', (page) => {
  test(
    'has commands that succeed on a started service and print what the page says',
    { timeout: TIMEOUT_MS },
    async () => {
      await runPage(page);
    },
  );
});

test('the helpers of the pages fail where the API refuses', async () => {
  const commands = '. examples/api.sh\napi GET /organization/nothing\n';
  const block = { page: 'none', line: 1, commands, notRun: undefined, prints: undefined };
  const { failure } = await runInShell([block], { cwd: clone, env: settings, timeoutMs: 20_000 });
  expect(failure).toMatch(/404/);
});
