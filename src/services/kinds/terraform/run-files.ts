import { readFileSync } from 'node:fs';
import path from 'node:path';
import { internal } from '#kernel/errors.ts';
import {
  commandsOf,
  PLAN_FILE,
  plannedVariables,
  type ExtraArguments,
  type TerraformAction,
} from '#services/kinds/terraform/commands.ts';

/** Folder of a run's files and of the module, in the image and in the mounted files. */
export const FOLDER = '/quarterdeck';
export const CACHE_FOLDER = `${FOLDER}/cache`;

const SCRIPT = readFileSync(path.join(import.meta.dirname, 'run.sh'), 'utf8');

/**
 * Backend of the state: exactly one of the fields (docs/contributing/rules.md 38). On clusters without Kubernetes Quarterdeck itself keeps
 * the state of `kubernetes` (docs/contributing/engine.md, *Terraform services*).
 */
export type Backend =
  { kubernetes: object } | { user_provided: object } | { blueprint: { type: string; config?: Record<string, string> } };

/** Value of a variable: plain text, or an expression of Terraform's language. */
export interface VariableValue {
  key: string;
  value: string;
  isExpression: boolean;
}

export interface RunInput {
  action: TerraformAction;
  /** Candidates for the program, the best first: names or absolute paths. */
  programs: string[];
  /** True if the module's own version constraint chooses among the programs. */
  moduleChooses: boolean;
  /** Folder of the module in the repository. */
  rootPath: string;
  backend: Backend;
  /** Backend of the last release, if the state is migrated from it. */
  previousBackend: Backend | null;
  extra: ExtraArguments;
  variableFiles: string[];
  variables: VariableValue[];
}

export const keepsState = (backend: Backend): boolean => 'kubernetes' in backend;

/** Makes the file that overrides the module's backend; null keeps the module's own. */
function backendFile(backend: Backend): string | null {
  if ('kubernetes' in backend) return json({ terraform: { backend: { http: {} } } });
  if ('user_provided' in backend) return null;
  const { type, config = {} } = backend.blueprint;
  return json({ terraform: { backend: { [type]: config } } });
}

/**
 * Terraform's configuration of a run. Checkpoint would report each run to HashiCorp; and with a file of its own, a run reads no credentials
 * from a home directory.
 */
const CLI_CONFIG = 'disable_checkpoint = true\n';

/** Makes the files of a run, by absolute path, which `run.sh` reads beside itself. Only those of the variables contain secrets. */
export function filesOf(input: RunInput): { path: string; content: string }[] {
  const commands = commandsOf(input.action, input.extra, !keepsState(input.backend));
  const first = input.action === 'migrate' && input.previousBackend ? input.previousBackend : input.backend;
  const files: Record<string, string | null> = {
    'run.sh': SCRIPT,
    module: lines([path.posix.normalize(`./${input.rootPath.replace(/^\/+/, '')}`)]),
    programs: lines(input.programs),
    choose: input.moduleChooses ? 'true\n' : null,
    'terraform.rc': CLI_CONFIG,
    'backend.tf.json': backendFile(first),
    'next-backend.tf.json': input.action === 'migrate' ? backendFile(input.backend) : null,
    'plan-file': lines([PLAN_FILE]),
    'plan-variables': lines(plannedVariables(input.extra)),
    'var-files': lines(input.variableFiles.map((file) => file.replace(/^\/+/, ''))),
    'variables.tfvars.json': variablesFile(input.variables),
    'structured.tfvars': structuredFile(input.variables),
  };
  commands.forEach(({ name, args }, at) => {
    files[`commands/${String(at + 1).padStart(2, '0')}-${name}`] = lines(args);
  });
  return Object.entries(files)
    .filter((entry): entry is [string, string] => entry[1] !== null)
    .map(([name, content]) => ({ path: `${FOLDER}/run/${name}`, content }));
}

/** Joins texts to lines. Line ends within a text were refused when the configuration was saved. */
function lines(texts: readonly string[]): string {
  if (texts.some((text) => /[\n\r\0]/.test(text))) throw internal('A line of a run of Terraform has an end within.');
  return texts.map((text) => `${text}\n`).join('');
}

const json = (value: unknown): string => `${JSON.stringify(value)}\n`;

function variablesFile(variables: readonly VariableValue[]): string | null {
  const plain = variables.filter(({ isExpression }) => !isExpression);
  return plain.length === 0 ? null : json(Object.fromEntries(plain.map(({ key, value }) => [key, value])));
}

function structuredFile(variables: readonly VariableValue[]): string | null {
  const structured = variables.filter(({ isExpression }) => isExpression);
  return structured.length === 0 ? null : structured.map(({ key, value }) => `${key} = ${value}\n`).join('');
}

/** URL and credential of Quarterdeck's own state backend for one run. */
export interface StateAccess {
  url: string;
  user: string;
  password: string;
}

/** Pattern of Terraform's settings that a service's own variables must not change: each would override a setting of the run. */
const OWN_SETTINGS =
  /^TF_(CLI_ARGS.*|DATA_DIR|WORKSPACE|INPUT|IN_AUTOMATION|HTTP_.*|PLUGIN_CACHE_DIR|ENCRYPTION_.*PASSPHRASE_FILE)$/;

/** Returns the environment of a run: the service's variables, and settings with which Terraform works without a user. */
export function environmentOf(variables: Record<string, string>, access: StateAccess | null): Record<string, string> {
  const own = Object.fromEntries(Object.entries(variables).filter(([key]) => !OWN_SETTINGS.test(key)));
  const state: Record<string, string> = access
    ? {
        TF_HTTP_ADDRESS: access.url,
        TF_HTTP_LOCK_ADDRESS: access.url,
        TF_HTTP_UNLOCK_ADDRESS: access.url,
        TF_HTTP_USERNAME: access.user,
        TF_HTTP_PASSWORD: access.password,
        // Five minutes of retries: the state server may be restarted meanwhile.
        TF_HTTP_RETRY_MAX: '40',
        TF_HTTP_RETRY_WAIT_MIN: '1',
        TF_HTTP_RETRY_WAIT_MAX: '10',
      }
    : {};
  return { ...own, TF_IN_AUTOMATION: '1', TF_INPUT: '0', CHECKPOINT_DISABLE: '1', ...state };
}
