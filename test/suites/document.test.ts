import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { makeDocument } from '#platform/http/openapi.ts';

type Json = Record<string, any>;

const written = readFileSync(path.join(import.meta.dirname, '../../openapi.json'), 'utf8');
const document: Json = makeDocument(allRoutes());
const operations: Json[] = Object.values<Json>(document.paths).flatMap((item) => Object.values<Json>(item));

/** Every object in the document, with the way to it. */
function* nodesOf(node: unknown, at: string[] = []): Generator<[string[], Json]> {
  if (!node || typeof node !== 'object') return;
  if (!Array.isArray(node)) yield [at, node];
  for (const [key, value] of Object.entries(node)) yield* nodesOf(value, [...at, key]);
}

/** Every schema: in components, parameters, bodies, and below them. Not the maps from names to schemas. */
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
        const inPath = operation.parameters.filter((parameter: Json) => parameter.in === 'path');
        const named = [...route.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
        expect(inPath.map((parameter: Json) => parameter.name).sort(), `${method} ${route}`).toEqual(named.sort());
        expect(inPath.every((parameter: Json) => parameter.required)).toBe(true);
        const keys = operation.parameters.map((parameter: Json) => `${parameter.in} ${parameter.name}`);
        expect(new Set(keys).size, `${method} ${route}`).toBe(keys.length);
      }
  });

  test('refers only to components that it has, and has none that nothing refers to', () => {
    const refs = [...nodesOf(document)].flatMap(([, node]) => (typeof node.$ref === 'string' ? [node.$ref] : []));
    const present = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect([...new Set(refs)].filter((ref) => !present.includes(ref))).toEqual([]);
    expect(present.filter((ref) => !refs.includes(ref))).toEqual([]);
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
});
