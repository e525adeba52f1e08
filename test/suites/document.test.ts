import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { readSettings } from '#platform/settings/index.ts';
import { makeApiDocument } from '#services/api-document/document.ts';

type Json = Record<string, any>;

const written = readFileSync(path.join(import.meta.dirname, '../../openapi.json'), 'utf8');
const document: Json = makeApiDocument(allRoutes());
const operations: Json[] = Object.values<Json>(document.paths).flatMap((item) => Object.values<Json>(item));

/** Returns the parameters of an operation, shared components included. */
const parametersOf = (operation: Json): Json[] =>
  operation.parameters.map((parameter: Json) =>
    parameter.$ref ? document.components.parameters[parameter.$ref.split('/').at(-1)] : parameter,
  );

/** Yields every object in the document, with the path to it. */
function* nodesOf(node: unknown, at: string[] = []): Generator<[string[], Json]> {
  if (!node || typeof node !== 'object') return;
  if (!Array.isArray(node)) yield [at, node];
  for (const [key, value] of Object.entries(node)) yield* nodesOf(value, [...at, key]);
}

/** Every schema: in components, parameters, bodies, and below them. Maps from names to schemas are excluded. */
const schemas = [...nodesOf(document)].filter(([at, node]) => {
  const [holder, parent] = [at.at(-2), at.at(-1)];
  if (parent === 'properties' && !('type' in node && typeof node.type === 'string')) return false;
  return parent === 'schema' || parent === 'items' || holder === 'properties' || holder === 'schemas';
});

describe('the API document', () => {
  test('is current in openapi.json', () => {
    const current = `${JSON.stringify(document, null, 1)}\n`;
    expect(written === current, 'openapi.json is not what the routes say: run `npm run gen`').toBe(true);
  });

  test('has unique operation ids, and tag and summary for each operation', () => {
    const ids = operations.map((operation) => operation.operationId);
    expect(ids.length).toBeGreaterThan(100);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    for (const operation of operations) {
      expect(operation.operationId).toMatch(/^[a-z]\w+$/);
      expect(operation.summary, operation.operationId).toMatch(/\S/);
      expect(operation.tags, operation.operationId).toHaveLength(1);
    }
  });

  test('tells which keys variables and secrets must not have, wherever a key is given', () => {
    const requests = [
      'EnvironmentVariableRequest',
      'EnvironmentVariableEditRequest',
      'AliasRequest',
      'VariableRequest',
      'VariableEditRequest',
      'VariableAliasRequest',
    ];
    const { schemas: named } = document.components;
    const keys = requests.map((name) => named[name].properties.key);
    const prefix = readSettings({}).builtInVariablePrefix;
    for (const key of [...keys, named.VariableImportRequest.properties.vars.items.properties.name]) {
      expect(key.description).toContain(`Must not begin with the prefix of built-in variables, which is \`${prefix}\``);
      expect(key.description).toContain('QUARTERDECK_BUILT_IN_VARIABLE_PREFIX');
    }
  });

  test('serves no path twice, whatever its parameters are called', () => {
    const served = Object.entries<Json>(document.paths).flatMap(([route, item]) =>
      Object.keys(item).map((method) => `${method} ${route.replaceAll(/\{\w+\}/g, '{}')}`),
    );
    expect(served.filter((route, index) => served.indexOf(route) !== index)).toEqual([]);
  });

  test('takes API tokens and sessions everywhere but where no credentials are needed', () => {
    expect(document.security).toEqual([{ apiToken: [] }, { bearer: [] }]);
    expect(document.components.securitySchemes).toMatchObject({
      apiToken: { type: 'apiKey', in: 'header', name: 'Authorization' },
      bearer: { type: 'http', scheme: 'bearer' },
    });
    for (const operation of operations)
      expect(operation.security, operation.operationId).toEqual(operation['x-action'] === 'public' ? [] : undefined);
  });

  test('names each parameter of a path once as required, and nothing that is not in it', () => {
    for (const [route, item] of Object.entries<Json>(document.paths))
      for (const [method, operation] of Object.entries<Json>(item)) {
        const inPath = parametersOf(operation).filter((parameter) => parameter.in === 'path');
        const named = [...route.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
        expect(inPath.map((parameter) => parameter.name).sort(), `${method} ${route}`).toEqual(named.sort());
        expect(inPath.every((parameter) => parameter.required)).toBe(true);
        const keys = parametersOf(operation).map((parameter) => `${parameter.in} ${parameter.name}`);
        expect(new Set(keys).size, `${method} ${route}`).toBe(keys.length);
      }
  });

  test('refers only to components that it has, and has none that nothing refers to', () => {
    const refs = [...nodesOf(document)].flatMap(([, node]) => (typeof node.$ref === 'string' ? [node.$ref] : []));
    const present = ['schemas', 'responses', 'parameters'].flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
    );
    expect([...new Set(refs)].filter((ref) => !present.includes(ref))).toEqual([]);
    expect(present.filter((ref) => !refs.includes(ref))).toEqual([]);
  });

  test('gives no property a default, so that generated clients let it be left out', () => {
    const bodies = [...nodesOf({ ...document, paths: undefined })].filter(([at]) => at.includes('properties'));
    expect(bodies.length).toBeGreaterThan(500);
    expect(
      bodies.filter(([at, node]) => 'default' in node && at.at(-1) !== 'properties').map(([at]) => at.join('/')),
    ).toEqual([]);
  });

  test('describes each answer of an error once, and takes no empty Idempotency-Key', () => {
    for (const operation of operations) {
      const { operationId, responses } = operation;
      for (const [status, answer] of Object.entries<Json>(responses))
        if (Number(status) >= 400)
          expect(answer.$ref, `${operationId} ${status}`).toMatch(/^#\/components\/responses\//);
      const key = parametersOf(operation).find(({ name }) => name === 'Idempotency-Key');
      if (key) expect(key.schema, operationId).toMatchObject({ minLength: 1, maxLength: 255 });
    }
  });

  test('has one content type for each answer, so that generated clients know its type; other streams are told beside it', () => {
    const answers = operations.flatMap(({ operationId, responses }) =>
      Object.entries<Json>(responses).map(([status, answer]) => ({ operationId, status, answer })),
    );
    const types = ({ content = {} }: Json) => Object.keys(content);
    expect(answers.filter(({ answer }) => types(answer).length > 1)).toEqual([]);
    const streams = answers.filter(({ answer }) => answer['x-event-stream']);
    expect(streams.map(({ operationId }) => operationId)).toContain('listApplicationLog');
    for (const { operationId, answer } of streams) {
      expect(types(answer), operationId).toEqual(['application/json']);
      const { type, description, 'x-events': events } = answer['x-event-stream'];
      expect({ type, description, events }, operationId).toEqual({
        type: 'string',
        description: expect.stringContaining('Server-Sent Events'),
        events: expect.objectContaining({ message: expect.any(Object), end: expect.any(Object) }),
      });
    }
  });

  test('has no object within another under the name that generators would make of a component', () => {
    const names = new Set(Object.keys(document.components.schemas));
    const collisions = Object.entries<Json>(document.components.schemas).flatMap(([owner, schema]) =>
      Object.entries<Json>(schema.properties ?? {}).flatMap(([key, property]) => {
        const made = `${owner}${key.replaceAll(/(?:^|_)(\w)/g, (_all, letter: string) => letter.toUpperCase())}`;
        return names.has(made) && (property.properties || property.enum) ? [`${owner}.${key}`] : [];
      }),
    );
    expect(collisions).toEqual([]);
  });

  test('says of each schema what OpenAPI 3.0 understands', () => {
    expect(schemas.length).toBeGreaterThan(500);
    for (const [at, schema] of schemas) {
      const where = at.join('/');
      if ('nullable' in schema)
        expect('type' in schema || 'allOf' in schema || 'anyOf' in schema, `${where}: nullable without type`).toBe(
          true,
        );
      if ('type' in schema)
        expect(['string', 'integer', 'number', 'boolean', 'array', 'object'], where).toContain(schema.type);
      if (schema.type === 'array') expect(schema.items, where).toBeTypeOf('object');
      for (const keyword of ['const', 'examples', 'patternProperties', '$defs', 'exclusiveMinimum', 'exclusiveMaximum'])
        if (keyword in schema) expect(schema[keyword], `${where}/${keyword}`).toBeTypeOf('boolean');
      for (const name of schema.required ?? []) expect(Object.keys(schema.properties ?? {}), where).toContain(name);
    }
  });

  test('says of every tag and every operation what it is for, in sentences', () => {
    const sentence = /^[A-Z0-9`].*[.!]$/s;
    for (const { name, description } of document.tags) expect(description, `tag ${name}`).toMatch(sentence);
    for (const { operationId, description, summary } of operations) {
      expect(description, operationId).toMatch(sentence);
      expect(description, `${operationId}: the description repeats the summary`).not.toBe(`${summary}.`);
      expect(description, operationId).not.toMatch(/undefined|\$\{|\[object/);
    }
  });

  test('describes each parameter that many operations have once', () => {
    const inline = operations.flatMap(({ parameters }) =>
      parameters
        .filter(({ $ref, in: place }: Json) => !$ref && place !== 'path')
        .map((one: Json) => JSON.stringify(one)),
    );
    const often = [...Map.groupBy(inline, (text) => text)].filter(([, uses]) => uses.length > 10);
    expect(often.map(([text]) => text)).toEqual([]);
  });

  test('has an example for every body, which the schema of the body accepts', () => {
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema(document, 'document');
    const bodies = operations.filter((operation) => operation.requestBody);
    expect(bodies.length).toBeGreaterThan(150);
    for (const { operationId, requestBody } of bodies)
      for (const [type, { schema, example }] of Object.entries<Json>(requestBody.content)) {
        // An archive shows nothing.
        if (schema.format === 'binary') continue;
        expect(example, `${operationId}: no example`).toBeDefined();
        if (type !== 'application/json') continue;
        const validate = ajv.compile({ ...absolute(schema), $id: `example-${operationId}` });
        expect(validate(example), `${operationId}: ${ajv.errorsText(validate.errors)}`).toBe(true);
      }
  });

  test('says that a Helm service has exactly one source', () => {
    const { source } = document.components.schemas.HelmRequest.properties;
    expect(source.oneOf).toEqual(['git_repository', 'git', 'helm_repository'].map((name) => ({ required: [name] })));
  });

  test('says under which licence the API may be used', () => {
    expect(document.info.license).toEqual({
      name: 'Apache-2.0',
      url: 'https://www.apache.org/licenses/LICENSE-2.0',
    });
  });

  test('says "an annotations group", never "a", and no other wrong article before what it is about', () => {
    const texts = operations.flatMap(({ summary, description }) => [summary, description] as string[]);
    expect(texts.filter((text) => text.includes('an annotations group')).length).toBeGreaterThan(3);
    const names = 'annotations?|application|agentic|alert|API|environment|organization|event|identity|image';
    expect(texts.filter((text) => new RegExp(`\\ba (?:${names})\\b`, 'i').test(text))).toEqual([]);
    expect(texts.filter((text) => /\ban (?:labels|cluster|service|project|job)\b/i.test(text))).toEqual([]);
  });

  test.each([
    ['GitRepositoryRequest', 'url', /https:\/\/, http:\/\/ or ssh:\/\/.*local path.*no credentials/],
    ['CustomDomainRequest', 'domain', /no scheme, port, path or wildcard.*punycode/],
    [
      'OrganizationApiTokenCreateRequest',
      'scope',
      /ADMIN, WRITE, DEPLOY or READ, in any case; required without role_id/,
    ],
    ['OrganizationApiTokenCreateRequest', 'role_id', /required without a scope/],
    ['OrganizationWebhookRequest', 'target_url', /begins with https:\/\/ or http:\/\/; not a private address/],
    ['VariableRequest', 'mount_path', /Absolute path, beginning with \//],
  ])('says of %s in words what %s has to be, beyond its pattern', (schema, field, rule) => {
    expect(document.components.schemas[schema].properties[field].description).toMatch(rule);
  });

  test.each([
    ['getClusterLogs', 'endpoint', /`query`, `query_range` or `labels`/],
    ['getClusterMetrics', 'endpoint', /`query` or `query_range`/],
    ['getClusterKubernetesEvents', 'from_date_time', /RFC 3339, or Unix digits/],
  ])('says of %s in words which values %s takes', (id, name, rule) => {
    const operation = operations.find(({ operationId }) => operationId === id)!;
    expect(parametersOf(operation).find((parameter) => parameter.name === name)?.description).toMatch(rule);
  });
});

/** Returns a schema with absolute references into the document, so that it compiles anywhere. */
const absolute = (node: any): any =>
  Array.isArray(node)
    ? node.map(absolute)
    : node && typeof node === 'object'
      ? Object.fromEntries(
          Object.entries(node).map(([key, value]) => [
            key,
            key === '$ref' && typeof value === 'string' ? `document${value}` : absolute(value),
          ]),
        )
      : node;
