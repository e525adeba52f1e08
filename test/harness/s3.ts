import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '#test/harness/free-port.ts';
import { waitFor } from '#test/harness/kubernetes/wait-for.ts';

/** Account of the store. */
export const S3_KEYS = { accessKeyId: 'ada', secretAccessKey: 'a secret of ada' };

/** Real S3-compatible store (versitygw, which `.ci/s3` builds) on loopback, whose objects are files of a folder. */
export interface TestStore {
  /** URL of its bucket. */
  url: string;
  /** Folder with the objects of the bucket. */
  folder: string;
  stop(): Promise<void>;
}

/** Starts a store with one bucket. The program `versitygw` must be on the PATH. */
export async function startStore(): Promise<TestStore> {
  const root = mkdtempSync(path.join(tmpdir(), 'qd-s3-'));
  const folder = path.join(root, 'data', 'bucket');
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const args = ['--port', `127.0.0.1:${port}`, '--access', S3_KEYS.accessKeyId, '--secret', S3_KEYS.secretAccessKey];
  const child = spawn(
    'versitygw',
    [...args, '--health', '/health', '--quiet', 'posix', '--sidecar', sidecar(root), path.dirname(folder)],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  await waitFor('the store', async () => {
    if (child.exitCode !== null) throw new Error(`versitygw ended with ${child.exitCode}: ${said}`);
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null);
    return answer?.status === 200;
  });
  return {
    url: `http://127.0.0.1:${port}/bucket`,
    folder,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      if (existsSync(root)) rmSync(root, { recursive: true });
    },
  };
}

/** Returns the folder for what the store notes of its objects: not every file system of tests has extended attributes. */
function sidecar(root: string): string {
  const folder = path.join(root, 'notes');
  mkdirSync(folder);
  return folder;
}
