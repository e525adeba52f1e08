import { invalidField } from '#kernel/errors.ts';

/** Commands that a service may give further arguments for (docs/contributing/rules.md 38). */
const COMMANDS = ['init', 'validate', 'plan', 'apply', 'destroy'] as const;
type CommandName = (typeof COMMANDS)[number];
export type ExtraArguments = Partial<Record<CommandName, string[]>>;

/** Action of a run. `apply` is a deployment; `destroy` is a removal, which `reconcile-destroy` precedes with an apply. */
export const TERRAFORM_ACTIONS = ['apply', 'plan', 'destroy', 'reconcile-destroy', 'unlock', 'migrate'] as const;
export type TerraformAction = (typeof TERRAFORM_ACTIONS)[number];

/** Command of a run: its arguments after the program, and the name by which the run's script treats it. */
export interface Command {
  name: CommandName | 'show' | 'state' | 'locked' | 'switch';
  args: string[];
}

/** Plan file in the module's folder. It lies in the run's copy of the module, which is deleted with the run. */
export const PLAN_FILE = '.quarterdeck.tfplan';
const QUIET = ['-input=false', '-no-color'];

/**
 * Returns the commands of an action, in order. A service's own arguments stand before the fixed ones, so that the fixed ones win.
 * `readsState` is set if Quarterdeck does not keep the state: then a command reads it. The run's script adds the plan to apply, behind the
 * variables that some programs require.
 */
export function commandsOf(action: TerraformAction, extra: ExtraArguments, readsState: boolean): Command[] {
  const of = (name: CommandName): string[] => extra[name] ?? [];
  const init: Command = { name: 'init', args: ['init', ...of('init'), ...QUIET] };
  const validate: Command = { name: 'validate', args: ['validate', ...of('validate'), '-no-color'] };
  const planning = [...of('plan'), ...split(of('apply')).planning];
  const plan: Command = { name: 'plan', args: ['plan', ...planning, ...QUIET, `-out=${PLAN_FILE}`] };
  const show: Command = { name: 'show', args: ['show', '-json', '-no-color', PLAN_FILE] };
  const apply: Command = { name: 'apply', args: ['apply', ...split(of('apply')).applying, ...QUIET] };
  const destroy: Command = { name: 'destroy', args: ['destroy', ...of('destroy'), ...QUIET, '-auto-approve'] };
  const state: Command[] = readsState ? [{ name: 'state', args: ['state', 'pull'] }] : [];
  switch (action) {
    case 'apply':
      return [init, validate, plan, show, apply, ...state];
    case 'plan':
      return [init, validate, plan, show];
    case 'destroy':
      return [init, destroy, ...state];
    case 'reconcile-destroy':
      return [init, plan, apply, destroy, ...state];
    case 'unlock':
      return [init, { name: 'locked', args: ['plan', ...planning, ...QUIET, '-refresh=false', '-lock-timeout=0s'] }];
    case 'migrate':
      return [
        init,
        { name: 'switch', args: [] },
        { name: 'init', args: ['init', ...of('init'), '-migrate-state', '-force-copy', ...QUIET] },
        ...state,
      ];
  }
}

/** Options that decide what is planned. A saved plan is applied unchanged, so that `plan` gets those of `apply` too. */
const PLANNING = ['var', 'var-file', 'target', 'exclude', 'replace', 'refresh', 'refresh-only', 'destroy'];
/** Options whose value may be the next argument. */
const WITH_VALUE = new Set([
  ...PLANNING.filter((name) => !['refresh', 'refresh-only', 'destroy'].includes(name)),
  'parallelism',
  'lock-timeout',
  'backend-config',
  'plugin-dir',
  'lockfile',
  'test-directory',
  'generate-config-out',
]);

const optionOf = (argument: string): string | undefined => /^--?([a-z][a-z-]*)(?==|$)/.exec(argument)?.[1];

/** Each option with its value, which may be an argument of its own. */
function* optionsIn(args: readonly string[]): Generator<{ at: number; name: string | undefined; words: string[] }> {
  for (let at = 0; at < args.length; at++) {
    const first = args[at]!;
    const name = optionOf(first);
    const takesNext = name !== undefined && WITH_VALUE.has(name) && !first.includes('=') && at + 1 < args.length;
    yield { at, name, words: takesNext ? [first, args[at + 1]!] : [first] };
    if (takesNext) at++;
  }
}

function split(args: readonly string[]): { planning: string[]; applying: string[] } {
  const parts: { planning: string[]; applying: string[] } = { planning: [], applying: [] };
  for (const { name, words } of optionsIn(args))
    (name !== undefined && PLANNING.includes(name) ? parts.planning : parts.applying).push(...words);
  return parts;
}

/** Returns the variables among the service's arguments of a plan: OpenTofu requires them again at the apply. */
export const plannedVariables = ({ plan = [], apply = [] }: ExtraArguments): string[] =>
  [...optionsIn([...plan, ...split(apply).planning])]
    .filter(({ name }) => name === 'var' || name === 'var-file')
    .flatMap(({ words }) => words);

/** Reasons for which options are refused, by option. */
const REFUSED: Record<string, string> = {
  chdir: 'is given by root_path',
  out: 'is given by the service itself: what was planned is what is applied',
  state: 'is given by backend',
  'state-out': 'is given by backend',
  backup: 'is given by backend',
  backend: 'is given by the field backend',
  input: 'is not possible: nobody is there to answer',
  json: 'is not possible: people read the log',
  help: 'does nothing else',
  version: 'does nothing else',
  'from-module': 'is given by terraform_files_source',
  'migrate-state': 'is an action of its own: deploy with the action MIGRATE_STATE',
  'force-copy': 'is an action of its own: deploy with the action MIGRATE_STATE',
  'detailed-exitcode': 'is not possible: a plan with changes would count as a failure',
  'auto-approve': 'is not needed: nobody is asked',
};

const MAX_ARGUMENTS = 100;
const MAX_LENGTH = 4000;

/** Throws 400 that names the argument which may not be given for its command, and why. */
export function checkExtraArguments(given: Record<string, string[]>, keepsState: boolean): ExtraArguments {
  for (const [command, args] of Object.entries(given)) {
    const field = `action_extra_arguments.${command}`;
    if (!(COMMANDS as readonly string[]).includes(command))
      throw invalidField(field, `is none of the commands ${COMMANDS.join(', ')}`);
    if (args.length > MAX_ARGUMENTS) throw invalidField(field, `has more than ${MAX_ARGUMENTS} arguments`);
    for (const { at, name, words } of optionsIn(args)) checkOption(`${field}[${at}]`, name, words, keepsState);
  }
  return given;
}

function checkOption(field: string, name: string | undefined, words: string[], keepsState: boolean): void {
  if (words.some((word) => word.length > MAX_LENGTH || /[\n\r\0]/.test(word)))
    throw invalidField(field, `must be one line of at most ${MAX_LENGTH} characters`);
  if (name === undefined)
    throw invalidField(
      field,
      `must be an option such as -parallelism=5 or the value of one, not ${JSON.stringify(words[0])}`,
    );
  if (REFUSED[name]) throw invalidField(field, `-${name} ${REFUSED[name]}`);
  if (name === 'lock' && /=(false|f|0)$/i.test(words[0]!))
    throw invalidField(field, '-lock=false is not possible: two runs would write one state');
  if (name === 'backend-config' && keepsState)
    throw invalidField(field, '-backend-config needs the backend user_provided');
}
