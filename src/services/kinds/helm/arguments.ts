import { invalidField } from '#kernel/errors.ts';

/**
 * Options of `helm upgrade` that a service may give, with whether a value follows. All others choose files or programs of the machine,
 * connections, another cluster, namespace or repository, or objects of other services.
 */
const TAKEN: Record<string, 'flag' | 'value'> = {
  '--atomic': 'flag',
  '--cleanup-on-fail': 'flag',
  '--debug': 'flag',
  '--description': 'value',
  '--devel': 'flag',
  '--disable-openapi-validation': 'flag',
  '--force': 'flag',
  '--history-max': 'value',
  '--install': 'flag',
  '-i': 'flag',
  '--labels': 'value',
  '--no-hooks': 'flag',
  '--render-subchart-notes': 'flag',
  '--reset-values': 'flag',
  '--skip-crds': 'flag',
  '--skip-schema-validation': 'flag',
  '--wait': 'flag',
  '--wait-for-jobs': 'flag',
};

/** Options that another field of the service stands for. */
const ELSEWHERE: Record<string, string> = {
  '--timeout': 'set timeout_sec instead',
  '--set': 'set values_override.set instead',
  '--set-string': 'set values_override.set_string instead',
  '--set-json': 'set values_override.set_json instead',
};

/** Returns the arguments for `helm upgrade`. Throws 400 for an option that only the service may set. */
export function checkArguments(given: string[]): string[] {
  for (let index = 0; index < given.length; index++) {
    const [option, value] = optionOf(given[index]!);
    const takes = Object.hasOwn(TAKEN, option) ? TAKEN[option] : undefined;
    if (!takes) throw invalidField(`arguments[${index}]`, refusalOf(option));
    if (takes === 'flag' && value !== undefined && !['true', 'false'].includes(value))
      throw invalidField(`arguments[${index}]`, `${option} takes true or false`);
    if (takes === 'flag' || value !== undefined) continue;
    if (++index === given.length) throw invalidField(`arguments[${index - 1}]`, `${option} must have a value`);
  }
  return given;
}

/** Returns whether a flag is set; the last one counts. An argument that is the value of the option before it is none. */
export function hasFlag(given: string[], flag: string): boolean {
  let isSet = false;
  for (let index = 0; index < given.length; index++) {
    const [option, value] = optionOf(given[index]!);
    if (option === flag) isSet = value !== 'false';
    else if (TAKEN[option] === 'value' && value === undefined) index++;
  }
  return isSet;
}

const optionOf = (argument: string): [string, string | undefined] => {
  const at = argument.startsWith('--') ? argument.indexOf('=') : -1;
  return at < 0 ? [argument, undefined] : [argument.slice(0, at), argument.slice(at + 1)];
};

function refusalOf(option: string): string {
  if (Object.hasOwn(ELSEWHERE, option)) return `${option} cannot be given: ${ELSEWHERE[option]}`;
  return `${option} cannot be given: values belong in values_override; cluster, namespace and repository are those of the service; allowed are ${Object.keys(TAKEN).join(', ')}`;
}
