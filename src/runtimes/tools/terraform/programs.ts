import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_PATH, runCommand } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Program of Terraform or OpenTofu on this machine. */
export interface FoundProgram {
  engine: 'TERRAFORM' | 'OPEN_TOFU';
  version: string;
  path: string;
}

const NAMES = { terraform: 'TERRAFORM', tofu: 'OPEN_TOFU' } as const;

/**
 * Finds the programs of Terraform and OpenTofu: those on the PATH of workloads, and those in a folder of versions
 * (`<folder>/terraform/1.11.4/terraform`). Programs that do not run are omitted.
 */
export async function findPrograms(folder: string): Promise<FoundProgram[]> {
  const candidates = Object.keys(NAMES).flatMap((name) => [
    ...DEFAULT_PATH.split(':').map((place) => path.join(place, name)),
    ...(folder ? foldersIn(path.join(folder, name)).map((place) => path.join(place, name)) : []),
  ]);
  const files = new Map(candidates.filter(isProgram).map((file) => [realpathSync(file), file]));
  const found = await Promise.all([...files.values()].map(inspect));
  return found.filter((program) => program !== undefined);
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => path.join(folder, name));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Known programs by path and modification time, so that each is asked for its version once. */
const known = new Map<string, Promise<FoundProgram | undefined>>();

function inspect(file: string): Promise<FoundProgram | undefined> {
  const key = `${file} ${statSync(file).mtimeMs}`;
  const present = known.get(key);
  if (present) return present;
  const asked = ask(file);
  known.set(key, asked);
  return asked;
}

async function ask(file: string): Promise<FoundProgram | undefined> {
  const env = { CHECKPOINT_DISABLE: '1', HOME: '/nonexistent' };
  try {
    const { exitCode, stdout } = await runCommand(file, ['version', '-json'], { env, timeoutSeconds: 20 });
    const { terraform_version: version } = JSON.parse(stdout) as { terraform_version?: unknown };
    if (exitCode !== 0 || typeof version !== 'string') return undefined;
    return { engine: NAMES[path.basename(file) as keyof typeof NAMES], version, path: file };
  } catch (error) {
    if (error instanceof RuntimeError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
