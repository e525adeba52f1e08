import { connect } from 'node:net';
import path from 'node:path';
import { readShim } from '#runtimes/tools/shim/index.ts';

/** Milliseconds after which a port that neither accepts nor refuses counts as served: its server is busy. */
const ANSWER_MS = 1_000;

/** Folders of the shims of both proxies in the folder of a node's proxy. */
const SHIMS = ['shim', 'caddy/shim'];

/** Returns whether the proxy of a folder runs: a shim keeps it running, or it serves on although its shim has ended. */
export const isProxyRunning = async (directory: string, host: string, port: number): Promise<boolean> =>
  SHIMS.some((shim) => readShim(path.join(directory, shim))?.alive) || accepts(host, port);

const accepts = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: ANSWER_MS });
    const end = (isServed: boolean) => {
      socket.destroy();
      resolve(isServed);
    };
    socket.on('connect', () => end(true));
    socket.on('timeout', () => end(true));
    // Other errors tell of this process, such as one that has no free descriptors.
    socket.on('error', ({ code }: NodeJS.ErrnoException) => end(code !== 'ECONNREFUSED'));
  });
