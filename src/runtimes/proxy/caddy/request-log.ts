import { mkdirSync } from 'node:fs';
import { open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { OwnedRoute } from '#runtimes/proxy/route-files.ts';
import { countRequest, VISITOR_LEFT } from '#runtimes/proxy/requests.ts';
import { emptyTally, type Tally } from '#runtimes/tools/tally.ts';

/** Returns the folder of the log of requests. */
export const requestFolder = (directory: string): string => join(directory, 'requests');

const FILE = 'requests.log';
/** Prefix of the names of Caddy's loggers of requests; the id of the service follows. */
const LOGGER = 'http.log.access.';
/** Size of a file in MB, and the number of full ones that are kept: some 700,000 requests between two counts. */
const FILE_MB = 16;
const KEPT = 6;

/** Handler that decides whether a request is logged. The first name counts up to version 2.7, the second from 2.8 on. */
const skips = (skip: boolean): object => ({ handler: 'vars', skip_log: skip, log_skip: skip });
/** Handler that leaves a request out of the log. */
export const UNCOUNTED = skips(true);

/** Handler that has a request logged after all. A request for a WebSocket stays out: older versions log it as if its visitor had left. */
export const COUNTED = {
  handler: 'subroute',
  routes: [{ match: [{ not: [{ header: { Upgrade: ['*'] } }] }], handle: [skips(false)] }],
};

/** Log settings for requests: nothing of what visitors send is kept. */
export const requestLog = (directory: string) => ({
  writer: {
    output: 'file',
    filename: join(requestFolder(directory), FILE),
    roll_size_mb: FILE_MB,
    roll_keep: KEPT,
    roll_gzip: false,
  },
  encoder: {
    format: 'filter',
    wrap: { format: 'json' },
    fields: Object.fromEntries(
      ['request', 'resp_headers', 'user_id', 'bytes_read', 'size'].map((name) => [name, { filter: 'delete' }]),
    ),
  },
  level: 'INFO',
  include: ['http.log.access'],
});

/** Names the logger of each host by its service. */
export const requestLogs = (routes: readonly OwnedRoute[]): object => ({
  logger_names: Object.fromEntries(
    routes.flatMap(({ host, serviceId }) => [host, `${host}.`].map((name) => [name, serviceId])),
  ),
});

/** End of what was counted: the file, by its inode, and the bytes of it. */
export interface LogPosition {
  inode: number;
  offset: number;
}

/** Creates the folder before Caddy does, so that only this account may look into it. */
export const createRequestFolder = (directory: string): void =>
  void mkdirSync(requestFolder(directory), { recursive: true, mode: 0o700 });

interface Opened {
  inode: number;
  modifiedMs: number;
  handle: FileHandle;
}

/** Counts the requests that were logged after a position; without one, none. Services without a request are answered, too. */
export async function readRequestLog(
  directory: string,
  last: LogPosition | null,
  serviceIds: string[],
): Promise<{ position: LogPosition; tallies: Map<string, Tally> }> {
  const tallies = new Map(serviceIds.map((serviceId) => [serviceId, emptyTally()]));
  const files = await openFiles(requestFolder(directory));
  try {
    const current = files.at(-1);
    if (!current) return { position: { inode: 0, offset: 0 }, tallies };
    if (!last) return { position: { inode: current.inode, offset: (await current.handle.stat()).size }, tallies };
    // Without the file of the position all others are newer.
    const from = files.findIndex(({ inode }) => inode === last.inode);
    let offset = 0;
    for (const [at, file] of files.entries())
      if (at >= from) offset = await countLines(file, at === from ? last.offset : 0, tallies);
    return { position: { inode: current.inode, offset }, tallies };
  } finally {
    await Promise.all(files.map(({ handle }) => handle.close()));
  }
}

/** Opens the files of the log, the oldest first. The present one is opened first: Caddy may rename it at any moment. */
async function openFiles(folder: string): Promise<Opened[]> {
  const current = await openFile(join(folder, FILE));
  const names = (await readdir(folder)).filter((name) => name !== FILE && name.endsWith('.log'));
  const full = await Promise.all(names.map((name) => openFile(join(folder, name))));
  const others = full.filter((file) => file !== null).filter(({ inode }) => inode !== current?.inode);
  others.sort((a, b) => a.modifiedMs - b.modifiedMs);
  return current ? [...others, current] : others;
}

/** Opens a file; null if there is none, or Caddy has removed it meanwhile. */
async function openFile(path: string): Promise<Opened | null> {
  try {
    const handle = await open(path, 'r');
    const { ino: inode, mtimeMs: modifiedMs } = await handle.stat();
    return { inode, modifiedMs, handle };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Counts the complete lines after an offset; returns the offset behind the last one. */
async function countLines({ handle }: Opened, offset: number, tallies: Map<string, Tally>): Promise<number> {
  // Characters of this encoding are bytes.
  const stream = handle.createReadStream({ start: offset, encoding: 'latin1', autoClose: false });
  let end = offset;
  let rest = '';
  for await (const part of stream as AsyncIterable<string>) {
    const lines = (rest + part).split('\n');
    end += rest.length + part.length;
    rest = lines.pop()!;
    end -= rest.length;
    for (const line of lines) countLine(line, tallies);
  }
  return end;
}

/** Fields of a line that are read. */
interface Logged {
  logger?: string;
  status: number;
  /** Seconds. */
  duration: number;
}

function countLine(line: string, tallies: Map<string, Tally>): void {
  const logged = parse(line);
  if (!logged?.logger?.startsWith(LOGGER)) return;
  const serviceId = logged.logger.slice(LOGGER.length);
  const tally = tallies.get(serviceId) ?? emptyTally();
  tallies.set(serviceId, tally);
  // Caddy has no status for a visitor who left before the answer.
  countRequest(tally, logged.status || VISITOR_LEFT, logged.duration * 1000);
}

/** Reads a line; null for one that a full disk has cut. */
function parse(line: string): Logged | null {
  try {
    return JSON.parse(line) as Logged;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
