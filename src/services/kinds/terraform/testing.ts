import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TaskSpec } from '#runtimes/runtime.ts';
import { FOLDER } from '#services/kinds/terraform/run-files.ts';
import { ENGINES } from '#services/kinds/terraform/schema.ts';
import { programName } from '#services/kinds/terraform/versions.ts';

/** Programs of each engine, and whether this machine has them. */
export const PROGRAMS = ENGINES.map((engine) => {
  const program = programName(engine);
  return { engine, program, isHere: spawnSync(program, ['version']).status === 0 };
});

export const HAS_TERRAFORM = PROGRAMS.some(({ engine, isHere }) => engine === 'TERRAFORM' && isHere);

export interface RealRun {
  root: string;
  pid: number;
  ended: Promise<{ exitCode: number | null; signal?: string; lines: string[]; output: string | null }>;
}

/** Executes a run of Terraform like a runtime: the real script with the real program, in a folder of its own. */
export function runReally(folder: string, spec: TaskSpec, source: string): RealRun {
  const root = mkdtempSync(path.join(folder, 'run-'));
  for (const file of spec.files) {
    const to = path.join(root, file.path.slice(FOLDER.length + 1));
    mkdirSync(path.dirname(to), { recursive: true });
    writeFileSync(to, file.content, { mode: 0o600 });
  }
  cpSync(source, path.join(root, 'source'), { recursive: true });
  const answer = path.join(root, 'answer.json');
  mkdirSync(path.join(root, 'tmp'));
  const child = spawn('sh', [path.join(root, 'run/run.sh'), answer], {
    cwd: root,
    env: { PATH: process.env.PATH!, TMPDIR: path.join(root, 'tmp'), ...spec.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (log += chunk));
  const ended = new Promise<Awaited<RealRun['ended']>>((resolve) =>
    child.on('close', (exitCode, signal) => {
      const output = exitCode === 0 && existsSync(answer) ? readFileSync(answer, 'utf8') : null;
      rmSync(root, { recursive: true, force: true });
      resolve({ exitCode, ...(signal ? { signal } : {}), lines: log.split('\n'), output });
    }),
  );
  return { root, pid: child.pid!, ended };
}
