import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { examineVariables, type VariableRecord } from '#deployments/model/variables.ts';
import { withholdSecrets } from '#deployments/model/withheld-secrets.ts';

const CANARY = 'the-canary';
const record = (key: string, part: Partial<VariableRecord> = {}): VariableRecord => ({
  id: key,
  key,
  scope: 'ENVIRONMENT',
  value: 'plain',
  ...part,
});
const secret = (key: string, part: Partial<VariableRecord> = {}) =>
  record(key, { isSecret: true, value: CANARY, ...part });
const given = (records: VariableRecord[]) => {
  const { variables, files, withheld, failures } = examineVariables(withholdSecrets(records));
  expect(failures.size).toBe(0);
  const values = Object.fromEntries(variables.map(({ key, value }) => [key, value]));
  return { values, files: files.map(({ path, content }) => [path, content]), withheld };
};

describe('of variables whose secrets are withheld', () => {
  test('a secret in whatever form has no value, and neither has what names it', () => {
    const records = [
      secret('SECRET'),
      secret('FILE', { mountPath: '/secret' }),
      record('EXTERNAL', { external: { access: 'a', name: 'n' }, value: null }),
      record('ALIAS', { aliases: 'SECRET', value: null }),
      record('OVERRIDE', { scope: 'APPLICATION', overrides: 'SECRET', value: CANARY }),
      record('NAMES', { value: 'a {{SECRET}}' }),
      record('DEEPER', { value: 'b {{NAMES}}' }),
      record('NAMES_ALIAS', { value: 'c {{ALIAS}}' }),
      record('NAMING_FILE', { value: 'd {{DEEPER}}', mountPath: '/naming', interpolateFile: true }),
      record('PLAIN', { value: 'e {{OTHER}}' }),
      record('OTHER'),
      record('VERBATIM', { value: '{{SECRET}}', mountPath: '/verbatim' }),
    ];
    const { values, files, withheld } = given(records);
    expect(values).toEqual({ PLAIN: 'e plain', OTHER: 'plain', VERBATIM: '/verbatim' });
    expect(files).toEqual([['/verbatim', '{{SECRET}}']]);
    expect(withheld).toEqual(['ALIAS', 'DEEPER', 'EXTERNAL', 'FILE', 'NAMES', 'NAMES_ALIAS', 'NAMING_FILE', 'OVERRIDE', 'SECRET']); // prettier-ignore
  });

  test('a secret that wins over a plain value of its key leaves the key without a value', () => {
    const project = record('KEY', { id: 'project', scope: 'PROJECT' });
    expect(given([project, secret('KEY', { id: 'own', scope: 'APPLICATION', overrides: 'project' })]).values).toEqual(
      {},
    );
  });

  test('credentials of the databases of the environment itself stay, and aliases of them, and what names them', () => {
    const password = secret('DB_PASSWORD', { scope: 'BUILT_IN', value: 'of the database' });
    const records = [
      password,
      record('ALIAS', { aliases: 'DB_PASSWORD', isSecret: true, value: null }),
      record('URL', { value: 'postgres://{{DB_PASSWORD}}' }),
      record('OVERRIDE', { id: 'o', overrides: 'DB_PASSWORD', isSecret: true, value: CANARY }),
    ];
    expect(given(records).values).toEqual({
      DB_PASSWORD: 'of the database',
      ALIAS: 'of the database',
      URL: 'postgres://of the database',
    });
  });

  test('no value and no file contains the text of a secret, whatever names what', () => {
    const keys = ['A', 'B', 'C', 'D', 'E', 'F'];
    const one = fc.record({
      isSecret: fc.boolean(),
      isFile: fc.boolean(),
      names: fc.subarray(keys),
      of: fc.option(fc.tuple(fc.constantFrom('aliases', 'overrides'), fc.constantFrom(...keys)), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(one, { minLength: 6, maxLength: 6 }), (parts) => {
        const records = parts.map(({ isSecret, isFile, names, of }, at) =>
          record(keys[at]!, {
            ...(isSecret ? { isSecret } : {}),
            ...(isFile ? { mountPath: `/${keys[at]}`, interpolateFile: true } : {}),
            ...(of ? { [of[0]]: of[1] } : {}),
            value: of?.[0] === 'aliases' ? null : `${isSecret ? CANARY : ''} ${names.map((name) => `{{${name}}}`).join('')}`, // prettier-ignore
          }),
        );
        const { variables, files, secrets } = examineVariables(withholdSecrets(records));
        expect(JSON.stringify([variables, files, secrets])).not.toContain(CANARY);
      }),
    );
  });
});
