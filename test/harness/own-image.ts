import { globSync, readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import dockerignore from '@balena/dockerignore';
import type { Pack } from 'tar-stream';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { addFile, addNode, addProgram } from '#test/harness/docker-images.ts';
import type { ImageConfig } from '#test/harness/kubernetes/images.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const DOCKERFILE = readFileSync(path.join(ROOT, 'deploy/Dockerfile'), 'utf8');

interface LockedPackage {
  dev?: boolean;
}

/** Adds what the public base image of deploy/Dockerfile has, made of this machine's programs: Node.js, a shell, git. */
export async function addBase(archive: Pack): Promise<void> {
  await addNode(archive);
  await addProgram(archive, 'usr/bin/git', findProgram('git')!);
}

/** Returns the files of the tree that a build of the image gets, relative to its root. */
export function contextFiles(): string[] {
  const rules = dockerignore.default().add(readFileSync(path.join(ROOT, 'deploy/Dockerfile.dockerignore'), 'utf8'));
  const all = ['LICENSE', 'package.json', 'package-lock.json'].concat(
    ['src', 'migrations', 'examples'].flatMap((folder) => filesBelow(folder)),
  );
  return all.filter((file) => !rules.ignores(file));
}

/** Returns the files of the packages that the program needs to run, without the Node.js that npm has. */
export function packageFiles(): string[] {
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  const wanted = Object.entries(packages).filter(
    ([name, { dev }]) => name !== '' && !dev && !/^node_modules\/node-(linux|darwin|win|bin)-/.test(name),
  );
  // Packages within a package are entries of their own.
  return wanted.flatMap(([name]) => filesBelow(name, `${name}/node_modules/**`));
}

/** Returns the files below a folder of the tree. */
export const filesBelow = (folder: string, ...exclude: string[]): string[] =>
  globSync(`${folder}/**`, { cwd: ROOT, exclude }).filter((file) => statSync(path.join(ROOT, file)).isFile());

/** Adds the program at /app, as deploy/Dockerfile does. */
export async function addProgramOfTree(archive: Pack): Promise<void> {
  for (const file of [...contextFiles(), ...packageFiles()])
    await addFile(archive, `app/${file}`, realpathSync(path.join(ROOT, file)));
}

/** Returns what the last stage of deploy/Dockerfile says about the process. */
export function imageConfig(): ImageConfig {
  const last = DOCKERFILE.slice(DOCKERFILE.lastIndexOf('\nFROM '));
  const line = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(last)![1]!;
  return {
    Entrypoint: JSON.parse(line('ENTRYPOINT')) as string[],
    Cmd: JSON.parse(line('CMD')) as string[],
    User: line('USER'),
    WorkingDir: line('WORKDIR'),
    Env: line('ENV').split(' '),
  };
}
