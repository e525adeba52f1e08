import { isAbsolute } from 'node:path';
import { runCommand } from '#runtimes/tools/command.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Caddy as installed on this machine. */
export interface CaddyProgram {
  path: string;
  /** Version without a leading v: `2.6.2`. */
  version: string;
}

/** Oldest version whose configuration and admin API the adapter was tested with. */
const LEAST_VERSION = '2.6.2';
/** First version in which a change of configuration does not close open WebSockets (`stream_close_delay`). */
const KEEPS_STREAMS = '2.7.0';
/** First version in which a change of configuration ends HTTP/3 connections gracefully. */
const KEEPS_HTTP3 = '2.10.0';

/** Properties of a version that its configuration depends on. */
export interface CaddyFeatures {
  keepsStreams: boolean;
  http3: boolean;
}

export const featuresOf = ({ version }: Pick<CaddyProgram, 'version'>): CaddyFeatures => ({
  keepsStreams: isAtLeast(version, KEEPS_STREAMS),
  http3: isAtLeast(version, KEEPS_HTTP3),
});

/**
 * Finds Caddy on the usual PATH of programs, or at an absolute path. Throws RuntimeError `failed` with the reason if it cannot be used;
 * returns null if no such program is installed.
 */
export async function findCaddy(wanted = 'caddy', searchPath?: string): Promise<CaddyProgram | null> {
  const path = isAbsolute(wanted) ? wanted : findProgram(wanted, searchPath);
  if (path === null) return null;
  const version = await versionOf(path);
  if (!isAtLeast(version, LEAST_VERSION))
    throw new RuntimeError('failed', `${path} is Caddy ${version}; version ${LEAST_VERSION} or later is required.`);
  return { path, version };
}

/** Returns the version. `version` prints `unknown` for a Caddy built with `go install`; `build-info` names its module then. */
async function versionOf(path: string): Promise<string> {
  const printed = async (command: string) => (await runCommand(path, [command], { timeoutSeconds: 20 })).stdout.trim();
  const text = await printed('version');
  const version =
    /^v?(\d+\.\d+\.\d+)/.exec(text) ?? /caddyserver\/caddy\/v2\s+v(\d+\.\d+\.\d+)/.exec(await printed('build-info'));
  if (version) return version[1]!;
  throw new RuntimeError('failed', `${path} version prints no version of Caddy: ${text.slice(0, 200)}`);
}

function isAtLeast(version: string, least: string): boolean {
  const [has, needs] = [version, least].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = needs.findIndex((part, index) => has[index] !== part);
  return at === -1 || has[at]! > needs[at]!;
}
