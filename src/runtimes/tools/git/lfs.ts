import { createHash } from 'node:crypto';
import { createReadStream, lstatSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { RuntimeError, cancelled } from '#runtimes/runtime.ts';
import { overHttps, type GitCredentials, type GitLocation } from '#runtimes/tools/git/location.ts';

/**
 * Sends one request to a URL that a server named, and returns the answer whatever its status. The implementation checks the address when it
 * connects, and follows no redirect.
 */
export type WebRequest = (
  url: string,
  request: {
    method?: 'GET' | 'POST';
    headers?: Record<string, string>;
    body?: string;
    timeoutMs?: number;
    maxBytes?: number;
    /** File that the body of a 2xx answer is written to. */
    saveTo?: string;
    signal?: AbortSignal;
  },
) => Promise<{
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  truncated: boolean;
}>;

/** Source of the LFS contents of a checkout. */
export interface LfsSource {
  location: GitLocation;
  credentials: GitCredentials | null;
  /** Data folder of the repository if it is on this machine. */
  localStore: string | null;
  request: WebRequest;
  /** Maximum of bytes for all contents together. */
  mostBytes: number;
  signal: AbortSignal;
}

interface Pointer {
  file: string;
  oid: string;
  size: number;
}

interface Action {
  href?: unknown;
  header?: Record<string, unknown>;
}

const POINTER = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n$/;
/** Length limit of a pointer in bytes (the format's own). */
const POINTER_BYTES = 1024;
const MEDIA_TYPE = 'application/vnd.git-lfs+json';
/** Contents of one request. Addresses with signatures and headers take up to 3 KiB for each. */
const BATCH = 50;
const ANSWER_BYTES = 256 * 1024;
const AT_ONCE = 4;
const ASK_MS = 30_000;
const DOWNLOAD_MS = 600_000;
const MOST_REDIRECTS = 3;
/** Headers that belong to the connection, which a server must not set. */
const OURS = /^(host|connection|content-length|transfer-encoding|upgrade|te|trailer|proxy-.*)$/i;

/**
 * Replaces the pointers of Git LFS by their contents. The program `git-lfs` is not used: it connects to any address that a server names.
 * Each content is checked by its SHA-256. Throws RuntimeError.
 */
export async function fetchLfs(source: LfsSource, directory: string, files: readonly string[]): Promise<void> {
  const pointers = (await Promise.all(files.map((file) => readPointer(path.join(directory, file))))).filter(
    (pointer) => pointer !== null,
  );
  if (pointers.length === 0) return;
  const folder = await mkdtemp(path.join(directory, '.git', 'lfs-'));
  const byContent = Map.groupBy(pointers, ({ oid }) => oid);
  const wanted = [...byContent.values()].map(([first]) => first!);
  if (pointers.reduce((sum, { size }) => sum + size, 0) > source.mostBytes)
    throw failed(source, 'they take more disk than the operator allows a checkout');
  try {
    for (let at = 0; at < wanted.length; at += BATCH) {
      const some = wanted.slice(at, at + BATCH);
      const actions = source.localStore === null ? await askForActions(source, some) : null;
      for (let next = 0; next < some.length; next += AT_ONCE)
        await Promise.all(
          some.slice(next, next + AT_ONCE).map(async (pointer) => {
            const content = path.join(folder, pointer.oid);
            if (actions === null) await copyFromStore(source, pointer, content);
            else await download(source, pointer, actions.get(pointer.oid), content);
            await checkContent(source, pointer, content);
            await place(content, byContent.get(pointer.oid)!);
          }),
        );
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Reads the pointer in a file; null if the file is a content itself. */
async function readPointer(file: string): Promise<Pointer | null> {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.size > POINTER_BYTES) return null;
  const [, oid, size] = POINTER.exec(await readFile(file, 'utf8')) ?? [];
  return oid === undefined ? null : { file, oid, size: Number(size) };
}

/**
 * Asks the batch API of the repository's own server for the downloads of the contents. `.lfsconfig`, which could name any server, is not
 * read.
 */
async function askForActions(source: LfsSource, wanted: Pointer[]): Promise<Map<string, Action>> {
  const { location, credentials } = source;
  const web = location.kind === 'ssh' ? overHttps(location) : location.url;
  if (web === null) throw failed(source, 'its server has an ssh port of its own and names no address for them');
  const answer = await ask(source, `${web.replace(/(\.git)?\/*$/, '')}.git/info/lfs/objects/batch`, {
    method: 'POST',
    headers: { accept: MEDIA_TYPE, 'content-type': MEDIA_TYPE, ...(credentials ? basic(credentials) : {}) },
    body: JSON.stringify({
      operation: 'download',
      transfers: ['basic'],
      objects: wanted.map(({ oid, size }) => ({ oid, size })),
    }),
    timeoutMs: ASK_MS,
    maxBytes: ANSWER_BYTES,
  });
  if (answer.status === 401 || answer.status === 403)
    throw failed(source, 'they cannot be read without a git token that may read them');
  if (answer.status !== 200) throw failed(source, `the server answered ${answer.status}`);
  if (answer.truncated) throw failed(source, `the server answered more than ${ANSWER_BYTES / 1024} KiB`);
  return actionsOf(source, answer.body.toString('utf8'));
}

function actionsOf(source: LfsSource, text: string): Map<string, Action> {
  let body: { objects?: { oid?: unknown; actions?: { download?: Action } }[] } | null;
  try {
    body = JSON.parse(text) as typeof body;
  } catch (error) {
    if (error instanceof SyntaxError) throw failed(source, 'the server did not answer with JSON');
    throw error;
  }
  const objects = Array.isArray(body?.objects) ? body.objects : [];
  return new Map(objects.flatMap(({ oid, actions }) => (actions?.download ? [[String(oid), actions.download]] : [])));
}

async function download(source: LfsSource, pointer: Pointer, action: Action | undefined, saveTo: string) {
  if (typeof action?.href !== 'string') throw failed(source, `the server has not ${pointer.oid}`);
  let url = action.href;
  let headers = headersOf(source, action, url);
  for (let redirects = 0; ; redirects++) {
    const answer = await ask(source, url, {
      headers,
      saveTo,
      maxBytes: pointer.size,
      timeoutMs: DOWNLOAD_MS,
    });
    if (answer.status === 200 && !answer.truncated) return;
    const target = answer.status >= 300 && answer.status < 400 ? answer.headers.location : undefined;
    if (typeof target !== 'string' || redirects === MOST_REDIRECTS || !URL.canParse(target, url))
      throw failed(
        source,
        answer.truncated ? `${pointer.oid} is longer than it should be` : `the server answered ${answer.status}`,
      );
    const next = new URL(target, url);
    if (next.origin !== new URL(url).origin) headers = {};
    url = next.href;
  }
}

/**
 * Returns the server's own headers for a download. If they carry no credentials, the token is added for the repository's own server only.
 */
function headersOf({ location, credentials }: LfsSource, action: Action, url: string): Record<string, string> {
  const given = Object.entries(action.header ?? {}).flatMap(([name, value]) =>
    typeof value === 'string' && !OURS.test(name) ? [[name.toLowerCase(), value] as const] : [],
  );
  const headers: Record<string, string> = Object.fromEntries(given);
  const own = URL.canParse(url) && new URL(url).origin === location.origin;
  return own && credentials && headers['authorization'] === undefined ? { ...headers, ...basic(credentials) } : headers;
}

/** Copies a content from the store of a repository on this machine. */
async function copyFromStore(source: LfsSource, { oid }: Pointer, target: string): Promise<void> {
  const file = path.join(source.localStore!, 'lfs', 'objects', oid.slice(0, 2), oid.slice(2, 4), oid);
  if (!lstatSync(file, { throwIfNoEntry: false })?.isFile()) throw failed(source, `it does not hold ${oid}`);
  await copyFile(file, target);
}

async function checkContent(source: LfsSource, { oid, size }: Pointer, file: string): Promise<void> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  if (lstatSync(file).size !== size || hash.digest('hex') !== oid)
    throw failed(source, `what came for ${oid} is something else`);
}

/** Writes the content in place of each of its pointers, with their modes. */
async function place(content: string, pointers: Pointer[]): Promise<void> {
  for (const [index, { file }] of pointers.entries()) {
    const one = `${content}.${index}`;
    await copyFile(content, one);
    await chmod(one, lstatSync(file).mode & 0o777);
    await rename(one, file);
  }
}

async function ask(source: LfsSource, url: string, request: Parameters<WebRequest>[1]) {
  try {
    return await source.request(url, { ...request, signal: source.signal });
  } catch (error) {
    if (source.signal.aborted) throw cancelled(error);
    throw failed(source, (error as Error).message, error);
  }
}

const basic = ({ username, password }: GitCredentials) => ({
  authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
});

const failed = ({ location }: LfsSource, why: string, cause?: unknown): RuntimeError =>
  new RuntimeError('failed', `${location.url} keeps files in Git LFS, and ${why}.`, cause);
