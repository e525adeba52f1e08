import { spawn } from 'node:child_process';
import path from 'node:path';

const MAIN = path.join(import.meta.dirname, '../main.ts');

/** What the program says, and its end. */
export interface Program {
  said: { stdout: string; stderr: string };
  ended: Promise<number | null>;
  /** Resolves with the standard output when that matches; rejects when the program ends before. */
  says(pattern: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

/** The real program with these settings and nothing else of the environment but the search path. */
export function launchProgram(args: string[], settings: Record<string, string>): Program {
  const env = { PATH: process.env.PATH, HOME: settings.QUARTERDECK_DATA_DIR, ...settings };
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  const waiting = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
      for (const look of waiting) look();
    });
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  const says = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => pattern.test(said.stdout) && resolve(said.stdout);
      waiting.add(look);
      look();
      void ended.then(() => reject(new Error(`It ended without ${pattern}: ${said.stdout}${said.stderr}`)));
    });
  return { said, ended, says, kill: (signal) => child.kill(signal) };
}

/** Runs the program to its end. */
export async function runProgram(args: string[], settings: Record<string, string>) {
  const program = launchProgram(args, settings);
  return { status: await program.ended, ...program.said };
}
