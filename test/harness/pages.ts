import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { bundledProgram } from '#test/harness/bundled-program.ts';

export const ROOT = path.join(import.meta.dirname, '../..');

/** Block of shell commands of a page. */
export interface ShellBlock {
  page: string;
  /** Line of the page on which the block begins. */
  line: number;
  commands: string;
  /** Reason for which tests do not run the block, from `<!-- not run: … -->` above it. */
  notRun: string | undefined;
  /** Text of the block of `text` below: the lines that the commands print, `…` for what differs each time. */
  prints: string | undefined;
}

const FENCE = /^```(\w*)\n(.*?)^```$/gms;
const NOT_RUN = /<!-- not run: ([^>]*?) -->\s*$/;

/** Returns the blocks of `sh` of a page, in their order. */
export function shellBlocks(page: string): ShellBlock[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8');
  const fences = [...text.matchAll(FENCE)];
  return fences.flatMap((fence, index) => {
    if (fence[1] !== 'sh') return [];
    const before = text.slice(0, fence.index);
    const next = fences[index + 1];
    return {
      page,
      line: before.split('\n').length,
      commands: fence[2]!,
      notRun: NOT_RUN.exec(before)?.[1],
      prints: next?.[1] === 'text' ? next[2] : undefined,
    };
  });
}

/** Returns what bash finds wrong with the commands; empty when it can read them. */
export function syntaxErrors(commands: string): string {
  return spawnSync('bash', ['-n'], { input: commands, encoding: 'utf8' }).stderr;
}

export interface ApiCall {
  method: string;
  path: string;
}

const API = /\bapi (GET|POST|PUT|PATCH|DELETE) "?(\/[^"\s?)|]*)/g;
const CURL = /\bcurl\b[^\n|]*?"\$QD(\/[^"\s?]*)[^\n|]*/g;

/** Returns the requests to the API that the commands make, by `api METHOD PATH` or by `curl … "$QD/…"`. */
export function apiCalls(commands: string): ApiCall[] {
  const joined = commands.replaceAll('\\\n', ' ');
  const byFunction = [...joined.matchAll(API)].map(([, method, where]) => ({ method: method!, path: where! }));
  const byCurl = [...joined.matchAll(CURL)].map(([line, where]) => {
    const named = / -X (\w+)/.exec(line)?.[1];
    return { method: named ?? (/ -d /.test(line) ? 'POST' : 'GET'), path: where! };
  });
  return [...byFunction, ...byCurl];
}

/** Tells whether openapi.json has an operation of that method whose path this one is, with shell variables for its parameters. */
export function isOperation({ method, path: where }: ApiCall, paths: Record<string, Record<string, unknown>>): boolean {
  const parts = where.split('/');
  return Object.entries(paths).some(([template, operations]) => {
    const wanted = template.split('/');
    const fits = wanted.every((part, i) => part === parts[i] || (part.startsWith('{') && parts[i]));
    return wanted.length === parts.length && fits && method.toLowerCase() in operations;
  });
}

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Returns the first of the wanted lines that the output lacks, in order; `…` stands for any characters of a line. */
export function missingLine(wanted: string, output: string): string | undefined {
  const lines = output.split('\n');
  let from = 0;
  return wanted.split('\n').find((line) => {
    if (line.trim() === '' || line.trim() === '…') return false;
    const pattern = new RegExp(line.trim().split('…').map(escape).join('.*'));
    const at = lines.findIndex((candidate, i) => i >= from && pattern.test(candidate));
    from = at + 1;
    return at < 0;
  });
}

const MARK = '@@ block ';

/** Output of each block, and the place of the command that failed. */
export interface Session {
  outputs: string[];
  failure: string | undefined;
}

/** Runs the blocks one after the other in one shell, which stops at the first command that fails. */
export async function runInShell(
  blocks: ShellBlock[],
  options: { cwd: string; env: Record<string, string>; before?: string; after?: string; timeoutMs: number },
): Promise<Session> {
  const program = `"${process.execPath}" "${await bundledProgram()}"`;
  const script = [
    'set -euo pipefail',
    // Commands that the pages print work outside the clone as well: no packages are installed, nothing is asked.
    `quarterdeck() { ${program} "$@"; }`,
    // A request of curl that is answered by an error fails, as with `api`.
    'curl() { command curl --fail-with-body "$@"; }',
    options.before ?? '',
    ...blocks.flatMap(({ commands }, i) => [
      `echo "${MARK}${i}"`,
      commands.replaceAll('node scripts/quarterdeck.mjs', 'quarterdeck'),
      'echo',
    ]),
    `echo "${MARK}${blocks.length}"`,
    options.after ?? '',
  ].join('\n');
  const result = await execa('bash', ['-c', script], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH!, HOME: options.cwd, ...options.env },
    extendEnv: false,
    stdin: 'ignore',
    timeout: options.timeoutMs,
    reject: false,
    stripFinalNewline: false,
  });
  const { stdout, stderr } = result;
  const [, ...outputs] = stdout.split(new RegExp(`^${MARK}\\d+\n`, 'm'));
  if (!result.failed) return { outputs, failure: undefined };
  const at = blocks[Math.max(0, outputs.length - 1)];
  const said = `${outputs.at(-1) ?? stdout}\n${stderr}`.slice(-4_000);
  return {
    outputs,
    failure: `${at?.page}:${at?.line} failed (${result.timedOut ? 'it took too long' : `status ${result.exitCode}`}): ${said}`,
  };
}

/** Makes a clone of the examples as a reader has it: a repository with one commit on the branch `main`. */
export function makeClone(folder: string): void {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Reader', '-c', 'user.email=reader@example.com', ...args], { cwd: folder });
  execFileSync('cp', ['-r', path.join(ROOT, 'examples'), folder]);
  git('init', '--quiet', '--initial-branch', 'main');
  git('add', '.');
  git('commit', '--quiet', '--message', 'The examples');
}
