import { chmodSync, mkdirSync, readFileSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(path.join(tmpdir(), 'qd-agent-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the script with a program that replaces the agent. */
async function run(name: string, program: string) {
  const at = path.join(folder, name);
  for (const part of ['run', 'answer/work/1-example', 'bin']) mkdirSync(path.join(at, part), { recursive: true });
  const write = (file: string, text: string) => writeFileSync(path.join(at, file), text);
  write('run/agent.sh', readFileSync(path.join(import.meta.dirname, 'agent.sh'), 'utf8'));
  write('run/prompt.md', 'Look into it.');
  write('run/mcp.json', '{"mcpServers":{}}');
  write('run/settings.json', '{}');
  write('run/repositories.tsv', '1-example\tmain\thttps://git.example.com/example.git\n');
  write('answer/work/1-example/read.me', 'as it was');
  write('bin/claude', `#!/bin/sh\n${program}\n`);
  chmodSync(path.join(at, 'bin/claude'), 0o755);
  const end = await execa('sh', [path.join(at, 'run/agent.sh')], {
    env: { PATH: `${path.join(at, 'bin')}:${process.env.PATH}` },
    reject: false,
  });
  return { end, answer: () => readFileSync(path.join(at, 'answer/answer.json'), 'utf8') };
}

test('the agent works among the repositories with the prompt, sees what it changes, and its last line is the answer', async () => {
  const { end, answer } = await run(
    'good',
    'ls; cat; echo; echo changed >1-example/read.me; git -C 1-example status --short; echo \'{"result":"done"}\'',
  );
  expect(end.exitCode, end.stderr).toBe(0);
  expect(end.stdout).toContain('1-example');
  expect(end.stdout).toContain('M read.me');
  expect(end.stdout).toContain('Look into it.');
  expect(answer()).toBe('{"result":"done"}\n');
});

test("a failure of the agent is the run's", async () => {
  const { end } = await run('bad', 'echo cannot; exit 7');
  expect([end.exitCode, end.stdout.includes('cannot')]).toEqual([7, true]);
});
