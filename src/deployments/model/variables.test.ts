import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import {
  builtInId,
  builtInVariables,
  isBuiltInId,
  ownersOfBuiltIn,
  unsealedText,
} from '#deployments/model/built-in-variables.ts';
import {
  examineVariables,
  rankOf,
  resolveVariables,
  typeOf,
  VariableError,
  type VariableRecord,
} from '#deployments/model/variables.ts';

let count = 0;
const record = (part: Partial<VariableRecord> & { key: string }): VariableRecord => ({
  id: `id-${++count}`,
  scope: 'APPLICATION',
  value: null,
  ...part,
});
const valuesOf = (records: VariableRecord[]) =>
  Object.fromEntries(resolveVariables(records).variables.map(({ key, value }) => [key, value]));
const problemsOf = (records: VariableRecord[]) => {
  try {
    resolveVariables(records);
  } catch (error) {
    if (error instanceof VariableError) return error.problems;
    throw error;
  }
  throw new Error('The records resolve.');
};

describe('the value of a key', () => {
  test('is that of the lowest scope, and of a secret over a variable beside it', () => {
    const scopes = ['PROJECT', 'BUILT_IN', 'APPLICATION', 'ENVIRONMENT'] as const;
    const all = scopes.map((scope) => record({ key: 'A', scope, value: scope }));
    expect(valuesOf(all)).toEqual({ A: 'APPLICATION' });
    expect(valuesOf(all.filter(({ scope }) => scope !== 'APPLICATION'))).toEqual({ A: 'ENVIRONMENT' });
    expect(valuesOf(all.filter(({ scope }) => rankOf(scope) < 2))).toEqual({ A: 'PROJECT' });
    const secret = record({ key: 'A', isSecret: true, value: 'hidden' });
    expect(valuesOf([secret, ...all])).toEqual({ A: 'hidden' });
    expect(valuesOf([record({ ...secret, scope: 'PROJECT', key: 'A' }), ...all])).toEqual({ A: 'APPLICATION' });
  });

  test('of an alias is that of its source, whatever overrides the source', () => {
    const source = record({ key: 'URL', scope: 'PROJECT', value: 'x' });
    const override = record({ key: 'URL', scope: 'ENVIRONMENT', value: 'y', overrides: source.id });
    const aliases = [source, override].map((of, index) => record({ key: `ALIAS_${index}`, aliases: of.id }));
    expect(valuesOf([source, override, ...aliases])).toEqual({ URL: 'y', ALIAS_0: 'x', ALIAS_1: 'y' });
  });

  test('tells which record it comes from', () => {
    const source = record({ key: 'URL', scope: 'PROJECT', value: 'x' });
    const override = record({ key: 'URL', scope: 'JOB', value: 'y', overrides: source.id });
    expect(resolveVariables([source, override]).variables[0]).toEqual({
      key: 'URL',
      value: 'y',
      isSecret: false,
      origin: { scope: 'JOB', id: override.id, via: 'OVERRIDE' },
    });
  });

  test('of an alias whose source is gone, or is an alias, is an error that names it', () => {
    expect(problemsOf([record({ key: 'A', aliases: 'gone' })])).toMatchObject([
      { code: 'SOURCE_MISSING', keys: ['A'] },
    ]);
    const value = record({ key: 'V', value: 'v' });
    const alias = record({ key: 'B', aliases: value.id });
    expect(problemsOf([value, alias, record({ key: 'C', aliases: alias.id })])).toMatchObject([
      { code: 'SOURCE_MISSING', keys: ['C'] },
    ]);
  });

  test('of an external secret that was not read is an error that names it, and a secret once it was', () => {
    const external = record({ key: 'A', external: { access: newId(), name: 'prod/db' } });
    const alias = record({ key: 'B', aliases: external.id });
    expect(problemsOf([external, alias]).map(({ code, keys }) => [code, ...keys])).toEqual([
      ['EXTERNAL_SECRET', 'A'],
      ['EXTERNAL_SECRET', 'B'],
    ]);
    const resolved = resolveVariables([{ ...external, value: 'read' }, alias]);
    expect(resolved.variables).toMatchObject([
      { key: 'A', value: 'read', isSecret: true },
      { key: 'B', value: 'read', isSecret: true },
    ]);
    expect(resolved.secrets).toEqual(['read']);
  });
});

describe('a value that names keys', () => {
  test('has them replaced, through any number of steps, by what wins for them', () => {
    expect(
      valuesOf([
        record({ key: 'URL', scope: 'PROJECT', value: 'http://{{HOST}}:{{PORT}}/{{HOST}}' }),
        record({ key: 'HOST', scope: 'PROJECT', value: 'a' }),
        record({ key: 'HOST', value: '{{NAME}}.local' }),
        record({ key: 'NAME', value: 'b' }),
        record({ key: 'PORT', scope: 'BUILT_IN', value: '80' }),
      ]).URL,
    ).toBe('http://b.local:80/b.local');
  });

  test('keeps unknown keys and other braces as written, and warns of the keys', () => {
    const resolved = resolveVariables([record({ key: 'A', value: '{{NOPE}} {{NOPE}} {{ A }} {{.Values}} {{}} {A}' })]);
    expect(resolved.variables[0]!.value).toBe('{{NOPE}} {{NOPE}} {{ A }} {{.Values}} {{}} {A}');
    expect(resolved.warnings).toEqual(['A names {{NOPE}}, which is no variable here: it stays as written.']);
  });

  test('does not replace what a replaced value spells together with its surroundings', () => {
    const records = [
      record({ key: 'A', value: '{{OPEN}}B}}' }),
      record({ key: 'OPEN', value: '{{' }),
      record({ key: 'B', value: 'b' }),
    ];
    expect(valuesOf(records).A).toBe('{{B}}');
  });

  test('in a circle is an error that names the circle once, wherever it is entered', () => {
    const circle = [
      record({ key: 'C', value: '{{A}}' }),
      record({ key: 'B', value: '{{C}}' }),
      record({ key: 'A', value: '{{B}}' }),
      record({ key: 'USER', value: '{{B}}' }),
    ];
    const problems = problemsOf(circle);
    expect(problems).toMatchObject([{ code: 'CYCLE', keys: ['A', 'B', 'C'] }]);
    expect(problems[0]!.message).toContain('A -> B -> C -> A');
    expect(problemsOf(circle.toReversed())).toEqual(problems);
    expect([...examineVariables(circle).failures.keys()].sort()).toEqual(['A', 'B', 'C', 'USER']);
    expect(problemsOf([record({ key: 'SELF', value: '{{SELF}}' })])[0]!.message).toContain('SELF -> SELF');
  });

  test('and names a secret is one', () => {
    const resolved = resolveVariables([
      record({ key: 'URL', value: 'db://u:{{PASSWORD}}@h' }),
      record({ key: 'PASSWORD', value: 'hunter2', isSecret: true }),
      record({ key: 'PLAIN', value: 'x' }),
    ]);
    expect(resolved.variables.filter(({ isSecret }) => isSecret).map(({ key }) => key)).toEqual(['PASSWORD', 'URL']);
    expect(resolved.secrets).toEqual(['db://u:hunter2@h', 'hunter2']);
  });

  test('that grows without bound is an error, and one that goes through thousands of steps is not', () => {
    const doubling = Array.from({ length: 40 }, (_, n) =>
      record({ key: `D${n}`, value: `{{D${n + 1}}}{{D${n + 1}}}` }),
    );
    const problems = problemsOf([...doubling, record({ key: 'D40', value: 'xxxxxxxx' })]);
    expect(problems[0]).toMatchObject({ code: 'TOO_LARGE' });
    const chain = Array.from({ length: 20_000 }, (_, n) => record({ key: `K${n}`, value: `{{K${n + 1}}}` }));
    expect(valuesOf([...chain, record({ key: 'K20000', value: 'end' })]).K0).toBe('end');
  });
});

describe('a file variable', () => {
  test('is a file with its value, and a variable with its path', () => {
    const file = record({ key: 'CERT', value: 'pem', mountPath: '/etc/cert', isSecret: true });
    const resolved = resolveVariables([file, record({ key: 'USE', value: 'file://{{CERT}}' })]);
    expect(resolved.files).toEqual([{ path: '/etc/cert', content: 'pem' }]);
    expect(resolved.variables).toMatchObject([
      { key: 'CERT', value: '/etc/cert', isSecret: false },
      { key: 'USE', value: 'file:///etc/cert', isSecret: false },
    ]);
    expect(resolved.secrets).toEqual(['pem']);
  });

  test('has keys replaced only if it says so, and is a secret once a secret was put into it', () => {
    const host = record({ key: 'HOST', value: 'h', isSecret: true });
    const file = record({ key: 'CONF', value: 'to {{HOST}} {{NOPE}}', mountPath: '/c' });
    expect(resolveVariables([file, host])).toMatchObject({
      files: [{ content: 'to {{HOST}} {{NOPE}}' }],
      warnings: [],
    });
    const resolved = resolveVariables([{ ...file, interpolateFile: true }, host]);
    expect(resolved.files).toEqual([{ path: '/c', content: 'to h {{NOPE}}' }]);
    expect(resolved.secrets).toContain('to h {{NOPE}}');
    expect(resolved.warnings).toHaveLength(1);
  });

  test('gives its path to overrides and aliases, which stay that', () => {
    const file = record({ key: 'CONF', scope: 'PROJECT', value: 'one', mountPath: '/c' });
    const override = record({ key: 'CONF', scope: 'ENVIRONMENT', value: 'two', overrides: file.id });
    const second = record({ key: 'CONF', value: 'three', overrides: override.id });
    expect([file, override, second].map(typeOf)).toEqual(['FILE', 'OVERRIDE', 'OVERRIDE']);
    expect(resolveVariables([file, override, second]).files).toEqual([{ path: '/c', content: 'three' }]);
    const alias = record({ key: 'OTHER', scope: 'PROJECT', aliases: file.id });
    expect(resolveVariables([file, alias]).files).toEqual([{ path: '/c', content: 'one' }]);
    const both = resolveVariables([file, override, alias]);
    expect(both.files).toEqual([{ path: '/c', content: 'two' }]);
    expect(both.warnings).toEqual(["CONF and OTHER have the path /c: the file is CONF's, of the lower scope."]);
  });

  test('beside another one at the same path in the same scope is an error that names both', () => {
    const files = ['A', 'B'].map((key) => record({ key, value: key, mountPath: '/same' }));
    expect(problemsOf(files)).toMatchObject([{ code: 'SAME_PATH', keys: ['A', 'B'] }]);
    expect(resolveVariables(files.map((file) => ({ ...file, value: 'equal' }))).files).toHaveLength(1);
  });
});

/** A project with two environments of two services each, and variables of all sorts that keep the rules of creation. */
const KEYS = ['A', 'B', 'C', 'D'];
const PARENTS = ['project', 'env1', 'env2', 'env1/x', 'env1/y', 'env2/x', 'env2/y'];
type Stored = VariableRecord & { parent: string };
const isAbove = (parent: string, child: string) =>
  parent === 'project' ? child !== 'project' : child.startsWith(`${parent}/`);
const scopeOf = (parent: string) =>
  parent === 'project' ? 'PROJECT' : parent.includes('/') ? 'APPLICATION' : 'ENVIRONMENT';

const seeds = fc.array(
  fc.record({
    parent: fc.constantFrom(...PARENTS),
    key: fc.constantFrom(...KEYS),
    sort: fc.constantFrom('value', 'value', 'file', 'override', 'alias'),
    isSecret: fc.boolean(),
    source: fc.nat(),
    text: fc.array(fc.constantFrom('x', 'y', ...KEYS.map((key) => `{{${key}}}`), '{{UNKNOWN}}'), { maxLength: 3 }),
  }),
  { maxLength: 25 },
);

/** Stores what the rules allow, in order. */
function grow(list: typeof seeds extends fc.Arbitrary<infer T> ? T : never): Stored[] {
  const stored: Stored[] = [];
  for (const [index, { parent, key, sort, isSecret, source, text }] of list.entries()) {
    const taken = (wanted: string, secret: boolean) =>
      stored.some((one) => one.parent === parent && one.key === wanted && (one.isSecret ?? false) === secret);
    const base = { id: `v${index}`, parent, scope: scopeOf(parent) } as const;
    const value = text.join('');
    if (sort === 'override' || sort === 'alias') {
      const sources = stored.filter((one) =>
        sort === 'override'
          ? isAbove(one.parent, parent)
          : one.aliases === undefined && (one.parent === parent || isAbove(one.parent, parent)),
      );
      const of = sources[source % Math.max(sources.length, 1)];
      const name = sort === 'override' ? of?.key : key;
      if (!of || taken(name!, of.isSecret ?? false)) continue;
      const own = { ...base, key: name!, ...(of.isSecret ? { isSecret: true } : {}) };
      stored.push(sort === 'override' ? { ...own, value, overrides: of.id } : { ...own, value: null, aliases: of.id });
    } else if (!taken(key, isSecret))
      stored.push({ ...base, key, value, isSecret, ...(sort === 'file' ? { mountPath: `/${key}` } : {}) });
  }
  return stored;
}

const visibleFrom = (stored: Stored[], service: string) =>
  stored.filter(({ parent }) => parent === service || isAbove(parent, service));
const SERVICES = PARENTS.filter((parent) => parent.includes('/'));

describe('whatever is stored by the rules', () => {
  test('every key that a service sees has exactly one value or a named problem, and nothing else has', () => {
    fc.assert(
      fc.property(seeds, (list) => {
        const stored = grow(list);
        for (const service of SERVICES) {
          const seen = visibleFrom(stored, service);
          const { variables, failures } = examineVariables(seen);
          const keys = [...new Set(seen.map(({ key }) => key))].sort();
          expect([...variables.map(({ key }) => key), ...failures.keys()].sort()).toEqual(keys);
          for (const problem of failures.values()) {
            expect(problem.keys.length).toBeGreaterThan(0);
            for (const key of problem.keys) expect(problem.message).toContain(key);
          }
          for (const { key, origin } of variables) {
            const lowest = Math.max(...seen.filter((one) => one.key === key).map((one) => rankOf(one.scope)));
            expect(rankOf(origin.scope)).toBe(lowest);
          }
        }
      }),
    );
  });

  test('the order of the records changes nothing', () => {
    fc.assert(
      fc.property(seeds, fc.infiniteStream(fc.nat()), (list, dice) => {
        const seen = visibleFrom(grow(list), 'env1/x');
        const shuffled = seen
          .map((one) => ({ one, at: dice.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ one }) => one);
        expect(examineVariables(shuffled)).toEqual(examineVariables(seen));
      }),
    );
  });

  test('an override changes no service outside of where it stands', () => {
    fc.assert(
      fc.property(seeds, (list) => {
        const stored = grow(list);
        for (const override of stored.filter((one) => one.overrides !== undefined)) {
          const gone = new Set([override.id]);
          for (const one of stored) if (gone.has(one.overrides ?? one.aliases ?? '')) gone.add(one.id);
          const without = stored.filter((one) => !gone.has(one.id));
          for (const service of SERVICES)
            if (service !== override.parent && !isAbove(override.parent, service))
              expect(examineVariables(visibleFrom(stored, service))).toEqual(
                examineVariables(visibleFrom(without, service)),
              );
        }
      }),
    );
  });

  test('no secret gets into a value, a file or a warning that is not marked as one', () => {
    fc.assert(
      fc.property(seeds, (list) => {
        const stored = grow(list).map((one) =>
          one.isSecret && one.value !== null ? { ...one, value: `${one.value}SECRET` } : one,
        );
        for (const service of SERVICES) {
          const { variables, files, warnings, secrets } = examineVariables(visibleFrom(stored, service));
          for (const { value, isSecret } of variables) expect(value.includes('SECRET') && !isSecret).toBe(false);
          for (const { content } of files) expect(content.includes('SECRET') && !secrets.includes(content)).toBe(false);
          expect(warnings.join()).not.toContain('SECRET');
        }
      }),
    );
  });
});

describe('built-in variables', () => {
  const project = { id: 'a0a0a0a0-0000-4000-8000-000000000001' };
  const environment = { id: 'b0b0b0b0-0000-4000-8000-000000000002' };
  const nothing = { hostInternal: null, hostExternal: null, database: null };
  const sealed = { place: 'p', content: 'c' };

  test('tell of the project, the environment and its services', () => {
    const services = [
      { ...nothing, id: 'abcdef01-0000-4000-8000-000000000003', type: 'APPLICATION', hostInternal: 'app-zabcdef01' },
      { ...nothing, id: 'abcdef02-0000-4000-8000-000000000004', type: 'JOB' },
      {
        ...nothing,
        id: 'abcdef03-0000-4000-8000-000000000005',
        type: 'POSTGRESQL',
        database: {
          internal: { host: 'postgresql-zabcdef03', port: 5432 },
          external: { host: 'db.example.net', port: 15432 },
          login: 'root',
          password: sealed,
          name: 'postgres',
        },
      },
    ];
    const all = builtInVariables('Q_', { project, environment, services });
    expect(Object.fromEntries(all.map(({ key, value }) => [key, value]))).toEqual({
      Q_PROJECT_ID: project.id,
      Q_ENVIRONMENT_ID: environment.id,
      Q_APPLICATION_ZABCDEF01_HOST_INTERNAL: 'app-zabcdef01',
      Q_POSTGRESQL_ZABCDEF03_HOST: 'db.example.net',
      Q_POSTGRESQL_ZABCDEF03_PORT: '15432',
      Q_POSTGRESQL_ZABCDEF03_LOGIN: 'root',
      Q_POSTGRESQL_ZABCDEF03_PASSWORD: null,
      Q_POSTGRESQL_ZABCDEF03_DEFAULT_DATABASE_NAME: 'postgres',
      Q_POSTGRESQL_ZABCDEF03_DATABASE_URL: null,
      Q_POSTGRESQL_ZABCDEF03_HOST_INTERNAL: 'postgresql-zabcdef03',
      Q_POSTGRESQL_ZABCDEF03_PORT_INTERNAL: '5432',
      Q_POSTGRESQL_ZABCDEF03_LOGIN_INTERNAL: 'root',
      Q_POSTGRESQL_ZABCDEF03_PASSWORD_INTERNAL: null,
      Q_POSTGRESQL_ZABCDEF03_DEFAULT_DATABASE_NAME_INTERNAL: 'postgres',
      Q_POSTGRESQL_ZABCDEF03_DATABASE_URL_INTERNAL: null,
    });
    const urls = all.filter(({ key }) => key.includes('DATABASE_URL')).map((one) => unsealedText(one.sealed!, 'a/b'));
    expect(urls).toEqual([
      'postgresql://root:a%2Fb@db.example.net:15432/postgres',
      'postgresql://root:a%2Fb@postgresql-zabcdef03:5432/postgres',
    ]);
    const password = all.find(({ key }) => key.endsWith('_PASSWORD'))!;
    expect(unsealedText(password.sealed!, 'a/b')).toBe('a/b');
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  });

  test('have ids that stay, are valid, and lead back to what they tell of', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 4 }), fc.constantFrom('HOST_INTERNAL', 'PASSWORD', 'PROJECT_ID'), (of, part) => {
        const id = builtInId(of, part as 'PASSWORD');
        expect(builtInId(of, part as 'PASSWORD')).toBe(id);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(isBuiltInId(id) && !isBuiltInId(of)).toBe(true);
        expect(ownersOfBuiltIn(id)).toContain(of);
        expect(ownersOfBuiltIn(of)).toEqual([]);
      }),
    );
  });
});
