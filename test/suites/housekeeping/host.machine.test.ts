import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { tryMachine } from '#runtimes/host/testing.ts';
import { filledFolders, machineState, processesWith } from './host-machine.ts';
import { KEPT, Program } from '#test/harness/program.ts';
import { Application, SERVER } from './application.ts';

/** Number of deployments: more than are kept, and thirty in CI and the soak. */
const DEPLOYMENTS = process.env.CI || process.env.SOAK ? 30 : 12;
/** Number of deployments per commit. */
const PER_COMMIT = 2;
const DOCKERFILE = `FROM node:24-alpine
WORKDIR /app
COPY version .
RUN echo "${Buffer.from(SERVER).toString('base64')}" | base64 -d > server.cjs
CMD ["node", "server.cjs"]
`;

const { networks } = await tryMachine();
const iptables = findProgram('iptables');

/** Objects of other programs that resemble the product's. */
class Foreign {
  readonly #tag = process.pid.toString(36);
  readonly #process: ChildProcess;
  readonly folders: string[];
  readonly file: string;

  constructor(dataDir: string) {
    this.folders = [
      `${dataDir}-other`,
      ...['host/services', 'images', 'volumes', 'checkouts', 'host/environments'].map((folder) =>
        path.join(dataDir, folder, newId()),
      ),
    ];
    for (const folder of this.folders) mkdirSync(folder, { recursive: true });
    this.file = path.join(this.folders[0]!, 'kept');
    for (const folder of this.folders) writeFileSync(path.join(folder, 'kept'), 'by others');
    this.#process = spawn('sleep', ['4321'], { cwd: this.folders[0], stdio: 'ignore' });
    if (!networks) return;
    for (const command of [
      `netns add ${this.name('qdn')}`,
      `link add ${this.name('qdh')} type bridge`,
      `link set ${this.name('qdh')} up`,
    ])
      execFileSync('ip', command.split(' '));
    if (iptables) execFileSync(iptables, ['-A', ...this.rule]);
  }

  name(prefix: string): string {
    return `${prefix}x${this.#tag}`;
  }

  get rule(): string[] {
    return ['FORWARD', '-i', this.name('qdh'), '-o', 'lo', '-j', 'ACCEPT'];
  }

  expectUntouched(): void {
    expect(this.#process.exitCode).toBe(null);
    expect(this.#process.signalCode).toBe(null);
    for (const folder of this.folders) expect(readFileSync(path.join(folder, 'kept'), 'utf8')).toBe('by others');
  }

  close(): void {
    this.#process.kill('SIGKILL');
    rmSync(this.folders[0]!, { recursive: true });
    if (!networks) return;
    if (iptables) execFileSync(iptables, ['-D', ...this.rule]);
    for (const command of [`link delete ${this.name('qdh')}`, `netns delete ${this.name('qdn')}`])
      execFileSync('ip', command.split(' '));
  }
}

let program: Program;
let foreign: Foreign;
beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host' });
  foreign = new Foreign(program.dataDir);
}, 60_000);
afterAll(async () => {
  foreign.close();
  await program.close();
});

test(`${DEPLOYMENTS} deployments on the host leave what one leaves and the kept images, a delete leaves nothing, and what others have there is untouched`, async () => {
  const before = { machine: machineState(), folders: filledFolders(program.dataDir) };
  const application = await Application.make(program, DOCKERFILE);
  application.commit();
  expect(await application.deploy()).toEqual({ state: 'DEPLOYED', error: null });
  await program.keepHouse();
  const state = () => ({
    machine: countOf(machineState()),
    folders: { ...filledFolders(program.dataDir), images: 0 },
    processes: processesWith(application.id).length,
    files: treeOf(path.join(program.dataDir, 'host', 'services', application.id)),
  });
  const one = state();
  expect(one.processes).toBeGreaterThan(0);

  for (let n = 2; n <= DEPLOYMENTS; n++) {
    if (n % PER_COMMIT === 0) application.commit();
    expect(await application.deploy()).toEqual({ state: 'DEPLOYED', error: null });
  }
  await program.keepHouse();
  expect(state()).toEqual(one);
  const images = readdirSync(path.join(program.dataDir, 'images', application.id));
  expect(images.map((name) => `host:${application.id}/${name}`).toSorted()).toEqual(await application.releasedImages());
  expect(images.length).toBeLessThanOrEqual(KEPT);
  expect(await program.unfinished()).toEqual([]);
  foreign.expectUntouched();

  await application.delete();
  await program.keepHouse();
  expect(machineState()).toEqual(before.machine);
  expect(filledFolders(program.dataDir)).toEqual(before.folders);
  expect(processesWith(application.id)).toEqual([]);
  expect(await program.unfinished()).toEqual([]);
  foreign.expectUntouched();
}, 240_000);

const countOf = (machine: ReturnType<typeof machineState>) =>
  Object.fromEntries(Object.entries(machine).map(([key, value]) => [key, Array.isArray(value) ? value.length : value]));

/** Returns the paths below a folder, without the number of the generation and without logs that are kept. */
const treeOf = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true })
        .map((name) => String(name).replace(/^\d+(?=\/|$)/, 'generation'))
        .filter((name) => !/^former-logs(?:\/|$)|\/(?:upper|work|files)\//.test(name))
        .toSorted()
    : [];
