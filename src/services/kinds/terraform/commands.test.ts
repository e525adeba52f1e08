import { describe, expect, test } from 'vitest';
import { checkExtraArguments, commandsOf, plannedVariables } from '#services/kinds/terraform/commands.ts';
import { environmentOf, filesOf } from '#services/kinds/terraform/run-files.ts';

const QUIET = ['-input=false', '-no-color'];

describe('the commands of an action', () => {
  test('of a deployment apply what was planned, with further arguments before ours', () => {
    const extra = {
      init: ['-upgrade'],
      plan: ['-parallelism=2'],
      apply: ['-target', 'a.b', '-var=x=1', '-parallelism', '3', '-refresh=false'],
    };
    expect(commandsOf('apply', extra, false).map(({ args }) => args)).toEqual([
      ['init', '-upgrade', ...QUIET],
      ['validate', '-no-color'],
      ['plan', '-parallelism=2', '-target', 'a.b', '-var=x=1', '-refresh=false', ...QUIET, '-out=.quarterdeck.tfplan'],
      ['show', '-json', '-no-color', '.quarterdeck.tfplan'],
      ['apply', '-parallelism', '3', ...QUIET],
    ]);
    expect(plannedVariables(extra)).toEqual(['-var=x=1']);
  });

  test('are as many as the action needs', () => {
    const names = (action: Parameters<typeof commandsOf>[0]) => commandsOf(action, {}, true).map(({ name }) => name);
    expect(names('apply')).toEqual(['init', 'validate', 'plan', 'show', 'apply', 'state']);
    expect(names('plan')).toEqual(['init', 'validate', 'plan', 'show']);
    expect(names('destroy')).toEqual(['init', 'destroy', 'state']);
    expect(names('reconcile-destroy')).toEqual(['init', 'plan', 'apply', 'destroy', 'state']);
    expect(names('unlock')).toEqual(['init', 'locked']);
    expect(names('migrate')).toEqual(['init', 'switch', 'init', 'state']);
  });
});

describe('further arguments', () => {
  test.each<[string, Record<string, string[]>]>([
    ['options', { plan: ['-parallelism=5', '-lock-timeout=3m', '--compact-warnings'] }],
    ['options whose value is the next one', { apply: ['-var', 'a=b', '-target', 'module.x["y"]'] }],
    ['none', { destroy: [] }],
    ['a lock that is wanted', { plan: ['-lock=true'] }],
  ])('are taken: %s', (_name, given) => {
    expect(checkExtraArguments(given, true)).toEqual(given);
  });

  test.each<[string, Record<string, string[]>, string]>([
    ['another command', { import: [] }, 'action_extra_arguments.import'],
    ['what is no option', { plan: ['main.tf'] }, 'action_extra_arguments.plan[0]'],
    ['a second value', { plan: ['-var', 'a=b', 'c=d'] }, 'action_extra_arguments.plan[2]'],
    ['a plan of their own', { plan: ['-out=x'] }, 'what was planned'],
    ['another folder', { init: ['-chdir=/etc'] }, 'root_path'],
    ['no lock', { apply: ['-lock=false'] }, 'two runs'],
    ['a state of their own', { apply: ['-state=/tmp/x'] }, 'backend'],
    ['a question', { plan: ['-input=true'] }, 'nobody'],
    ['the backend', { init: ['-backend-config', 'address=http://x'] }, 'user_provided'],
    ['a migration on the way', { init: ['-migrate-state'] }, 'MIGRATE_STATE'],
    ['two lines', { plan: ['-var=a=b\n-lock=false'] }, 'one line'],
    ['two lines in a value', { plan: ['-var', 'a=b\nc'] }, 'one line'],
    ['too many', { plan: Array.from({ length: 101 }, () => '-var=a=b') }, 'more than 100'],
  ])('are refused: %s', (_name, given, message) => {
    expect(() => checkExtraArguments(given, true)).toThrow(message);
  });
});

test('secrets stand in the file of variables and nowhere else', () => {
  const files = filesOf({
    action: 'apply',
    programs: ['terraform'],
    moduleChooses: false,
    rootPath: '/',
    backend: { kubernetes: {} },
    previousBackend: null,
    extra: {},
    variableFiles: [],
    variables: [
      { key: 'a', value: 'hunter22', isExpression: false },
      { key: 'b', value: '["hunter22"]', isExpression: true },
    ],
  });
  const holding = files.filter(({ content }) => content.includes('hunter22')).map(({ path }) => path);
  expect(holding).toEqual(['/quarterdeck/run/variables.tfvars.json', '/quarterdeck/run/structured.tfvars']);
});

test("a service's variables cannot undo what keeps a state to one writer", () => {
  const given = {
    TF_CLI_ARGS_apply: '-lock=false',
    TF_HTTP_PASSWORD: 'x',
    TF_WORKSPACE: 'w',
    TF_VAR_a: '1',
    AWS_REGION: 'r',
  };
  expect(environmentOf(given, null)).toEqual({
    TF_VAR_a: '1',
    AWS_REGION: 'r',
    TF_IN_AUTOMATION: '1',
    TF_INPUT: '0',
    CHECKPOINT_DISABLE: '1',
  });
});
