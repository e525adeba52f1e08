import type { TSchema } from 'typebox';
import { ACTIONS } from '#platform/access/actions.ts';
import { exampleFor } from '#platform/http/example.ts';
import type { Route } from '#platform/http/route.ts';
import { ErrorBody, PageQuery } from '#platform/http/schema.ts';

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

/** Names of the answers of errors, which are the same for every operation. */
const ERROR_NAMES: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  412: 'PreconditionFailed',
  413: 'ContentTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  502: 'BadGateway',
  503: 'ServiceUnavailable',
};

/** Parameters that many operations have, by the names of their components. */
const PARAMETERS = {
  Page: queryParameter('page', PageQuery.properties.page, false),
  PageSize: queryParameter('page_size', PageQuery.properties.page_size, false),
  Wait: {
    in: 'query',
    name: 'wait',
    required: false,
    description: 'Seconds to wait for the deployment to end before answering, at most 600.',
    schema: { type: 'integer', minimum: 0, maximum: 600 },
  },
  IdempotencyKey: {
    in: 'header',
    name: 'Idempotency-Key',
    required: false,
    description: 'The same key and request within 24 hours have one effect and the same answer.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  IfMatch: {
    in: 'header',
    name: 'If-Match',
    required: false,
    description: 'ETag of the version that the request is based on; 412 if there is a newer one.',
    schema: { type: 'string' },
  },
} as const;

const sharedParameter = (name: keyof typeof PARAMETERS): Json => ({ $ref: `#/components/parameters/${name}` });

function queryParameter(name: string, schema: TSchema, required: boolean): Json {
  const { description, ...rest } = schema as Json;
  return { in: 'query', name, required, ...(description ? { description } : {}), schema: rest };
}

/** Returns whether a node is a schema. The map of an object's properties is none, even if one is called `default`. */
const isSchema = (node: Json): boolean =>
  typeof node.type === 'string' || ['allOf', 'anyOf', 'oneOf'].some((keyword) => Array.isArray(node[keyword]));

/** Moves the default of a schema into its description: generators of clients take a property with `default` for a mandatory one. */
function withoutDefault({ default: value, description, ...rest }: Json): Json {
  const said = `Without it: ${JSON.stringify(value)}.`;
  return { ...rest, description: description ? `${description} ${said}` : said };
}

/** Texts of the document that are not of a single route. */
export interface DocumentTexts {
  /** Returns the description of a tag. */
  describeTag(name: string): string;
  /** Examples of bodies by operation id; without one the example is made from the schema. */
  examples: Record<string, unknown>;
}

/** Makes the OpenAPI 3.0 document of the routes. Schemas with a title become components. */
export function makeDocument(routes: Route[], texts: DocumentTexts): Json {
  const components: Json = {};
  const hoist = (node: unknown): any => {
    if (Array.isArray(node)) return node.map(hoist);
    if (!node || typeof node !== 'object') return node;
    const {
      title,
      exactlyOne,
      blankIsAbsent: _blank,
      readsTexts: _texts,
      unit: _unit,
      listed: _listed,
      ...rest
    } = node as Json;
    const copy = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, hoist(value)]));
    // Told to generators only: the rule is checked where it can say what is wrong.
    if (Array.isArray(exactlyOne)) copy.oneOf = exactlyOne.map((name) => ({ required: [name] }));
    if ('default' in copy && isSchema(copy)) return place(withoutDefault(copy), title);
    return place(copy, title);
  };
  const place = (copy: Json, title: unknown): any => {
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
    item[method] = operationOf(route, hoist, texts);
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Quarterdeck',
      version: '1.0.4',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      description:
        'Control plane for cloud application infrastructure. Every path is served bare and under /api/v1. In an optional id, tag or commit ' +
        'of a body, an empty string or null means that it is absent; where null clears a field, an empty string does too.',
    },
    servers: [{ url: '/' }, { url: '/api/v1' }],
    security: [{ apiToken: [] }, { bearer: [] }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({
      name,
      description: texts.describeTag(name),
    })),
    paths,
    components: {
      parameters: PARAMETERS,
      responses: Object.fromEntries(
        Object.entries(ERRORS).map(([status, description]) => [
          ERROR_NAMES[Number(status)],
          { description, content: { 'application/json': { schema: hoist(ErrorBody) } } },
        ]),
      ),
      schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        apiToken: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`Token <API token>`' },
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'Session that began with a password or a passkey, or a JWT of the identity provider',
        },
      },
    },
  };
}

function operationOf(route: Route, hoist: (node: unknown) => any, texts: DocumentTexts): Json {
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
        ? {
            content: {
              [answer.contentType ?? 'application/json']: { schema: hoist(answer.body) },
            },
          }
        : {}),
      // Not a second content type: generated clients would take an answer for either of them.
      ...(answer.stream ? { 'x-event-stream': hoist(answer.stream) } : {}),
    },
  };
  for (const status of errorsOf(route)) responses[status] = { $ref: `#/components/responses/${ERROR_NAMES[status]}` };
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
            content: route.streamedBody
              ? Object.fromEntries(route.streamedBody.types.map((type) => [type, { schema: hoist(route.body) }]))
              : {
                  [route.bodyContentType ?? 'application/json']: {
                    schema: hoist(route.body),
                    example: texts.examples[route.id] ?? exampleFor(route.body),
                  },
                },
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
    if (schema === PageQuery.properties.page) return sharedParameter('Page');
    if (schema === PageQuery.properties.page_size) return sharedParameter('PageSize');
    const parameter = queryParameter(name, schema, required.has(name));
    return { ...parameter, schema: hoist(parameter.schema) };
  });
  const extra: Json[] = [];
  if (route.settle) extra.push(sharedParameter('Wait'));
  // Keys belong to their caller: without a known caller they are not kept.
  if (route.method === 'POST' && route.action !== 'public') extra.push(sharedParameter('IdempotencyKey'));
  if (takesIfMatch(route)) extra.push(sharedParameter('IfMatch'));
  return [...inPath, ...inQuery, ...extra];
}

const takesIfMatch = (route: Route): boolean =>
  route.method === 'PUT' || route.method === 'DELETE' || route.method === 'PATCH';

/** Statuses besides success that a route may answer. */
function errorsOf(route: Route): number[] {
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
