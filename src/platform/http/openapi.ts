import type { TSchema } from 'typebox';
import { ACTIONS } from '#platform/access/actions.ts';
import type { Route } from '#platform/http/route.ts';
import { ErrorBody } from '#platform/http/schema.ts';

type Json = Record<string, any>;

const ERRORS: Record<number, string> = {
  400: 'Bad request: the message says what is wrong and what would be right.',
  401: 'The token is missing or invalid.',
  403: 'The token or role lacks the permission.',
  404: 'There is no such resource in your organizations.',
  409: 'The request conflicts with what is there.',
  412: 'If-Match names another version than the present one.',
  413: 'The body is larger than 1 MiB.',
  415: 'The body is not JSON.',
  429: 'The rate limit of the token is used up.',
  500: 'Internal server error; the message carries the request id.',
  502: 'A system that was asked for the answer did not give it.',
  503: 'The server cannot take this on at the moment: try again after `Retry-After`.',
};

/** The OpenAPI 3.0 document of the routes. Schemas with a title become components. */
export function makeDocument(routes: Route[]): Json {
  const components: Json = {};
  const hoist = (node: unknown): any => {
    if (Array.isArray(node)) return node.map(hoist);
    if (!node || typeof node !== 'object') return node;
    const { title, ...rest } = node as Json;
    const copy = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, hoist(value)]));
    if ('const' in copy) {
      copy.enum = [copy.const];
      delete copy.const;
    }
    // A field of that name isn't a schema's title.
    if (typeof title !== 'string') return title === undefined ? copy : { ...copy, title: hoist(title) };
    const present = components[title];
    if (present && JSON.stringify(present) !== JSON.stringify(copy))
      throw new Error(`Two schemas have the title ${title}.`);
    components[title] = copy;
    return { $ref: `#/components/schemas/${title}` };
  };
  const paths: Json = {};
  for (const route of routes) {
    const item = (paths[route.path] ??= {});
    const method = route.method.toLowerCase();
    if (item[method]) throw new Error(`Two routes answer ${route.method} ${route.path}.`);
    item[method] = operationOf(route, hoist);
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Quarterdeck',
      version: '1.0.4',
      description: 'Control plane for cloud application infrastructure. Every path is served bare and under /api/v1.',
    },
    servers: [{ url: '/' }, { url: '/api/v1' }],
    security: [{ apiToken: [] }, { bearer: [] }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        apiToken: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`Token <API token>`' },
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Session of the identity provider',
        },
      },
    },
  };
}

function operationOf(route: Route, hoist: (node: unknown) => any): Json {
  const { answer } = route;
  const responses: Json = {
    [answer.status]: {
      description:
        answer.description ??
        (answer.status === 201
          ? 'Created.'
          : answer.status === 202
            ? 'Accepted.'
            : answer.status === 204
              ? 'Done.'
              : 'Success.'),
      ...(answer.body
        ? { content: { [answer.contentType ?? 'application/json']: { schema: hoist(answer.body) } } }
        : {}),
    },
  };
  for (const status of errorsOf(route))
    responses[status] = { description: ERRORS[status], content: { 'application/json': { schema: hoist(ErrorBody) } } };
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    'x-action': route.action,
    ...(route.action in ACTIONS ? { 'x-level': ACTIONS[route.action as keyof typeof ACTIONS] } : {}),
    ...(route.action === 'public' ? { security: [] } : {}),
    parameters: parametersOf(route, hoist),
    ...(route.body
      ? {
          requestBody: {
            required: !route.optionalBody,
            content: { [route.bodyContentType ?? 'application/json']: { schema: hoist(route.body) } },
          },
        }
      : {}),
    responses,
  };
}

function parametersOf(route: Route, hoist: (node: unknown) => any): Json[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    in: 'path',
    name,
    required: true,
    schema: name!.endsWith('Id') ? { type: 'string', format: 'uuid' } : { type: 'string' },
  }));
  const properties = (route.query as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
  const required = new Set((route.query as { required?: string[] } | undefined)?.required ?? []);
  const inQuery = Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = schema as Json;
    return {
      in: 'query',
      name,
      required: required.has(name),
      ...(description ? { description } : {}),
      schema: hoist(rest),
    };
  });
  const extra: Json[] = [];
  if (route.settle)
    extra.push({
      in: 'query',
      name: 'wait',
      required: false,
      description: 'Seconds to wait for the action to settle before answering, at most 600.',
      schema: { type: 'integer', minimum: 0, maximum: 600 },
    });
  if (route.method === 'POST')
    extra.push({
      in: 'header',
      name: 'Idempotency-Key',
      required: false,
      description: 'The same key and request within 24 hours have one effect and the same answer.',
      schema: { type: 'string', maxLength: 255 },
    });
  if (takesIfMatch(route))
    extra.push({
      in: 'header',
      name: 'If-Match',
      required: false,
      description: 'ETag of the version that the request is based on; 412 if there is a newer one.',
      schema: { type: 'string' },
    });
  return [...inPath, ...inQuery, ...extra];
}

const takesIfMatch = (route: Route): boolean =>
  route.method === 'PUT' || route.method === 'DELETE' || route.method === 'PATCH';

/** Statuses besides success that a route may answer. */
export function errorsOf(route: Route): number[] {
  const statuses = new Set<number>([500, 503, ...(route.errors ?? [])]);
  if (route.action !== 'public') for (const status of [401, 429]) statuses.add(status);
  if (route.action !== 'public' && route.action !== 'authenticated') statuses.add(403);
  if (route.path.includes('{')) statuses.add(404);
  if (route.body || route.query || route.settle || route.method === 'POST') statuses.add(400);
  if (route.method === 'POST') statuses.add(409);
  if (takesIfMatch(route)) statuses.add(412);
  if (route.method !== 'GET') for (const status of [413, 415]) statuses.add(status);
  return [...statuses].sort((a, b) => a - b);
}
