import { httpUrl } from '#platform/settings/address.ts';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { tokenFile } from '#clusters/first-steps.ts';
import { ApiClient, NoAnswer, until } from '#cli/api-client.ts';
import { DeploymentLog, type ExecutionStatus, type LoggedService } from '#cli/deployment-log.ts';
import { print } from '#cli/print.ts';
import { readIgnoreRules } from '#kernel/docker-ignore.ts';
import { addEntry, listEntries, packed } from '#kernel/pack-folder.ts';
import { printable } from '#kernel/printable.ts';
import { IGNORED } from '#services/recognition/index.ts';
import type { Settings } from '#platform/settings/index.ts';

export interface UpOptions {
  application: string;
  /** Address of the API; that of the settings without it. */
  url?: string;
  /** File with an API token; the administrator's of the data directory without it, which goes to the service of the settings only. */
  tokenFile?: string;
}

/** Seconds that a deployment may take. */
const DEPLOY_SECONDS = 3600;
/**
 * Seconds that a question waits for the end, before the lines that were written meanwhile are printed: at first, and for what takes long. The
 * whole log is read for them.
 */
const WAIT_SECONDS = 2;
const LONG_WAIT_SECONDS = 10;
/** Milliseconds between two questions at least: each counts for the limit of the token. */
const LEAST_MS = 1000;
/** Seconds after which a deployment takes long. */
const LONG_SECONDS = 120;
/** Seconds for which a service that does not answer is asked again: it may be started anew while the deployment goes on. */
const AWAY_SECONDS = 120;

interface Application extends LoggedService {
  git_repository: { root_path: string; deployed_commit_id?: string };
  dockerfile_path: string | null;
}

interface Status extends ExecutionStatus {
  state: string;
  /** Requests that wait or run. */
  deployment_requests_count: number;
  /** Absent unless it has failed. */
  error?: { message: string; cause: { code: string; summary: string; fix: string; lines: string[] } | null };
}

interface Uploaded extends Status {
  git_commit_id: string;
  files: number;
}

/** Uploads a folder as the source of an application, shows the log of its deployment and prints its addresses. Throws where that fails. */
export async function upCommand(settings: Settings, folder: string, options: UpOptions): Promise<void> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${folder} is not a folder.`);
  const api = clientOf(settings, options);
  const one = `/application/${encodeURIComponent(options.application)}`;
  const application = await api.call<Application>('GET', one);
  const archive = () => packFolder(path.resolve(folder), application);
  const uploaded = await api.upload<Uploaded>(`${one}/source`, archive);
  const commit = printable(uploaded.git_commit_id);
  print(`Uploaded ${uploaded.files} ${uploaded.files === 1 ? 'file' : 'files'} as ${commit}.`);
  const log = new DeploymentLog(api, application, uploaded.deployment_request_id);
  const state = endOf(uploaded) ?? (await waitForEnd(api, one, log));
  if (state !== 'DEPLOYED') throw new Error(await whyEnded(api, one, state));
  const { git_repository } = await api.call<Application>('GET', one);
  const deployed = git_repository.deployed_commit_id;
  if (deployed !== uploaded.git_commit_id)
    throw new Error(
      `A later deployment took the place of this one: ${printable(deployed ?? 'no commit')} is deployed, not ${commit}.`,
    );
  const { results } = await api.call<{ results: { url: string }[] }>('GET', `${one}/link`);
  print([state, ...results.map(({ url }) => `  ${printable(url)}`)].join('\n'));
}

/** Returns in which state a deployment ended and why, on several lines. */
async function whyEnded(api: ApiClient, one: string, state: string): Promise<string> {
  const { error } = await api.call<Status>('GET', `${one}/status`);
  if (!error) return `The deployment ended with ${state}.`;
  const { message, cause } = error;
  const lines = cause ? [`${cause.code}: ${cause.summary}`, ...cause.lines.map((line) => `  ${line}`), cause.fix] : [];
  return [`The deployment ended with ${state}: ${message}`, ...lines].map(printable).join('\n');
}

/** Returns the client of the service. The administrator's token of this machine is sent to its own service, and to no other address. */
function clientOf(settings: Settings, { url: wanted, tokenFile: file }: UpOptions): ApiClient {
  const own = addressOf(settings);
  const url = (wanted ?? own).replace(/\/+$/, '');
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Error(`--url ${url}: must be an address such as https://quarterdeck.example.com.`);
  if (file === undefined && new URL(url).origin !== new URL(own).origin)
    throw new Error(
      `${url} is not the service of this machine's settings (${own}): name a file with a token of that service with --token-file.`,
    );
  return new ApiClient(url, readToken(file ?? tokenFile(settings)));
}

/** Returns the address of the service with these settings, as this machine reaches it. */
function addressOf({ host, port }: Settings): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return httpUrl(local, port);
}

function readToken(file: string): string {
  if (!existsSync(file)) throw new Error(`There is no ${file}: name the file of an API token with --token-file.`);
  return readFileSync(file, 'utf8').trim();
}

/** Returns the state in which the last request ended; undefined as long as one waits or runs. */
const endOf = ({ state, deployment_requests_count: requests }: Status): string | undefined =>
  requests === 0 && /^(?:DEPLOYED|CANCELED|RESTARTED|STOPPED|DELETED|[A-Z_]+_ERROR)$/.test(state) ? state : undefined;

function waitForEnd(api: ApiClient, one: string, log: DeploymentLog): Promise<string> {
  const begun = Date.now();
  let lastAnswer = begun;
  const ask = async () => {
    const seconds = Date.now() - begun < LONG_SECONDS * 1000 ? WAIT_SECONDS : LONG_WAIT_SECONDS;
    const asked = Date.now();
    try {
      const status = await api.call<Status>('GET', `${one}/status?wait=${seconds}`);
      lastAnswer = Date.now();
      await log.printNew(status);
      const end = endOf(status);
      // A request that waits behind another one is told at once.
      if (end === undefined) await sleep(Math.max(0, LEAST_MS - (Date.now() - asked)));
      return end;
    } catch (error) {
      if (!(error instanceof NoAnswer) || Date.now() - lastAnswer > AWAY_SECONDS * 1000) throw error;
      return undefined;
    }
  };
  return until(DEPLOY_SECONDS, `The deployment takes longer than ${DEPLOY_SECONDS} s and goes on.`, ask);
}

/**
 * Packs a folder as the build of the application takes it: without `.git`, and without what `.dockerignore` excludes below the root path.
 * The Dockerfile and the ignore files are always in it. Throws Error for an ignore file that leads out of the folder.
 */
export async function packFolder(folder: string, { git_repository, dockerfile_path }: Application): Promise<Readable> {
  const inside = (...parts: string[]) => path.posix.join('.', ...parts).replace(/\/$/, '');
  const root = inside(git_repository.root_path);
  const dockerfile = inside(root, dockerfile_path ?? 'Dockerfile');
  const rules = [`${dockerfile}.dockerignore`, inside(root, '.dockerignore')];
  // Without a Dockerfile one is made, whose build leaves out the same.
  const isMade = dockerfile_path === null && !existsSync(path.join(folder, dockerfile));
  const ignores = await readIgnoreRules(
    folder,
    rules.map((file) => path.join(folder, file)),
    isMade ? IGNORED : '',
  );
  const read = [dockerfile, ...rules];
  const kept = new Set(read);
  const top = await realpath(folder);
  for (const file of read) {
    // Each may be a link, whose file the build reads too.
    const real = await realpath(path.join(folder, file)).catch(() => undefined);
    if (real !== undefined) kept.add(path.relative(top, real));
  }
  const prefix = root === '.' ? '' : `${root}/`;
  const keep = (name: string) => kept.has(name) || !name.startsWith(prefix) || !ignores(name.slice(prefix.length));
  const archive = packed(async (into) => {
    // Ignored folders are walked too: a rule with `!` may include something in them again.
    for await (const entry of listEntries(folder, (name) => path.posix.basename(name) !== '.git'))
      if (entry.type === 'directory' || path.posix.basename(entry.name) === '.git' || !keep(entry.name)) continue;
      else if (entry.type !== 'other') await addEntry(into, entry);
      else throw new Error(`${entry.path} is no file, folder or link: move it away, or exclude it in .dockerignore.`);
  });
  const zipped = createGzip();
  // The error reaches who reads.
  pipeline(archive, zipped).catch((error: Error) => zipped.destroy(error));
  return zipped;
}
