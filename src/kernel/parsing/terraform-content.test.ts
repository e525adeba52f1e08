import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { readFileOf } from '#kernel/parsing/index.ts';
import { readStateContent, SENSITIVE } from '#kernel/parsing/terraform-content.ts';

const stateOf = (content: object) => JSON.stringify({ version: 4, serial: 3, lineage: 'l', ...content });
const checkState = (text: string) => readFileOf(newId(), 'terraform-state', { name: 'The state', text });
const attribute = (value: string) => ({ type: 'get_attr', value });
const index = (value: string | number) => ({ type: 'index', value: { value, type: 'string' } });

const resource = (attributes: object, sensitive_attributes: unknown[] = [], more: object = {}) => ({
  mode: 'managed',
  type: 'terraform_data',
  name: 'a',
  provider: 'provider["terraform.io/builtin/terraform"]',
  instances: [{ attributes, sensitive_attributes, ...more }],
});

describe('resources of a state', () => {
  test('have the addresses that Terraform gives them', () => {
    const content = stateOf({
      resources: [
        resource({}),
        { ...resource({}, [], { index_key: 1 }), module: 'module.net["a"]' },
        {
          ...resource({}, [], { index_key: 'x"y' }),
          mode: 'data',
          type: 'aws_ami',
          provider: 'provider["r.io/h/aws"].west',
        },
        resource({}, [], { deposed: 'abcd1234' }),
      ],
    });
    expect(
      readStateContent(content)!.resources.map(({ address, provider, mode }) => [address, provider, mode]),
    ).toEqual([
      ['terraform_data.a', 'terraform.io/builtin/terraform', 'managed'],
      ['module.net["a"].terraform_data.a[1]', 'terraform.io/builtin/terraform', 'managed'],
      ['data.aws_ami.a["x\\"y"]', 'r.io/h/aws.west', 'data'],
      ['terraform_data.a (deposed abcd1234)', 'terraform.io/builtin/terraform', 'managed'],
    ]);
  });

  const shown = (attributes: object, marked: unknown[], secrets: string[] = []) =>
    readStateContent(stateOf({ resources: [resource(attributes, marked)] }), secrets)!.resources[0]!.attributes;

  test('show no attribute that is marked as sensitive, however deep', () => {
    const path = [attribute('settings'), index('db'), index(0), attribute('password')];
    expect(shown({ settings: { db: [{ password: 'hunter22', user: 'a' }] }, name: 'n' }, [path])).toEqual({
      settings: { db: [{ password: SENSITIVE, user: 'a' }] },
      name: 'n',
    });
  });

  test('show nothing of a set of which an element is sensitive', () => {
    const element = { type: 'index', value: { value: { password: 'hunter22' }, type: ['object', {}] } };
    expect(shown({ blocks: [{ password: 'hunter22' }] }, [[attribute('blocks'), element]])).toEqual({
      blocks: SENSITIVE,
    });
  });

  test('show a sensitive value neither where a provider has copied it nor inside of other text', () => {
    expect(shown({ input: 'hunter22', output: 'hunter22', url: 'x://u:hunter22@h' }, [[attribute('input')]])).toEqual({
      input: SENSITIVE,
      output: SENSITIVE,
      url: `x://u:${SENSITIVE}@h`,
    });
    expect(shown({ output: 'a hunter22' }, [], ['hunter22'])).toEqual({ output: `a ${SENSITIVE}` });
  });

  test("show an attribute of any type without its type, which is nobody's secret", () => {
    const typed = { value: { a: 'hunter22' }, type: ['object', { a: 'string' }] };
    const answer = shown({ input: { value: 'plain', type: 'string' }, output: typed }, [
      [attribute('output'), attribute('a')],
    ]);
    expect(answer).toEqual({ input: 'plain', output: { a: SENSITIVE } });
  });

  test('are shown where what is marked is not there, or null', () => {
    expect(shown({ a: null, b: 1 }, [[attribute('gone')], [attribute('a'), attribute('x')]])).toEqual({
      a: null,
      b: 1,
    });
  });
});

test('an encrypted state tells nothing, and what is no state is refused', async () => {
  const encrypted = '{"encrypted_data":"x","meta":{}}';
  expect(readStateContent(encrypted)).toBeNull();
  await checkState(encrypted);
  for (const [text, problem] of [
    ['', 'it is not JSON'],
    ['null', 'it is no object'],
    ['[]', 'it is no object'],
    ['{"version":3,"serial":1}', 'it is not in format 4: Terraform 0.12 or later writes it'],
    ['{"version":4}', 'it is not in format 4: Terraform 0.12 or later writes it'],
  ] as const) {
    expect(() => readStateContent(text)).toThrow(problem);
    await expect(checkState(text)).rejects.toMatchObject({
      code: 'bad_request',
      message: `The state: ${problem}`,
    });
  }
});
