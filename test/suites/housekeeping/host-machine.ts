import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isLinkOfEngine } from '#test/harness/engine-links.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { commandLines } from '#runtimes/host/testing.ts';

const run = (program: string, ...args: string[]): string[] => {
  const found = findProgram(program);
  return found === null ? [] : execFileSync(found, args, { encoding: 'utf8' }).split('\n').filter(Boolean).toSorted();
};

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).toSorted() : []);

/** Traces of deployments on a machine outside of the data directory, without those of container engines. */
export interface MachineState {
  namespaces: string[];
  links: string[];
  /** Rules of the packet filter, without counters. */
  rules: string[];
  mounts: number;
  /** Control groups of instances. */
  groups: string[];
}

/**
 * Folders, mounts and rules of a container engine, and the small disk of the tests of crashes. They run beside these tests. An engine that the
 * tests start has a folder that begins with `qdd-`.
 */
const OF_OTHERS = /\/qdd-|\/qd-small-disk-|docker|\bbr-[0-9a-f]|\bqdt/i;

export const machineState = (): MachineState => ({
  namespaces: namesIn('/run/netns'),
  links: namesIn('/sys/class/net').filter((name) => !isLinkOfEngine(name)),
  rules: run('iptables-save')
    .filter((line) => line.startsWith('-A') && !OF_OTHERS.test(line))
    .map((line) => line.replace(/\[\d+:\d+\] /, '')),
  mounts: readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .filter((line) => !OF_OTHERS.test(line)).length,
  groups: ['cpu', 'memory', ''].flatMap((controller) => {
    const folder = path.join('/sys/fs/cgroup', controller);
    return namesIn(folder)
      .filter((name) => name.startsWith('quarterdeck'))
      .flatMap((name) => namesIn(path.join(folder, name)).filter((child) => /-\d+-\d+$/.test(child)));
  }),
});

/** Returns the processes whose command line contains a text. */
export const processesWith = (text: string): string[] =>
  commandLines()
    .filter((line) => line.includes(text))
    .toSorted();

/** Returns the folders of the data directory that deployments fill, each with its number of entries. */
export const filledFolders = (dataDir: string): Record<string, number> =>
  Object.fromEntries(
    ['checkouts', 'images', 'volumes', 'host/services', 'host/environments', 'proxy/routes'].map((folder) => [
      folder,
      namesIn(path.join(dataDir, folder)).length,
    ]),
  );
