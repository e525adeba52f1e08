import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { allRoutes } from '#app/routes.ts';
import { makeApiDocument } from '#services/api-document/document.ts';
import type { Route } from '#platform/http/route.ts';
import type { Answer, Caller } from '#test/harness/app.ts';
import { EXAMPLES, type Example } from './examples.ts';
import type { World } from './world.ts';

type Json = Record<string, any>;

const document: Json = closed(makeApiDocument(allRoutes()));
// `strict` off: OpenAPI's own keywords (`example`, `discriminator`) mean nothing to a validator.
const ajv = new Ajv({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(document, 'document');
const validators = new Map<string, ValidateFunction>();

/** Returns the document with closed schemas: properties that are not listed are refused, so that an answer has only documented fields. */
function closed(node: any): any {
  if (Array.isArray(node)) return node.map(closed);
  if (!node || typeof node !== 'object') return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]));
  const lists = copy.type === 'object' && copy.properties && !('additionalProperties' in copy);
  return lists ? { ...copy, additionalProperties: false } : copy;
}

const escaped = (text: string): string => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'));

/** Returns the difference between an answer and its documentation, or undefined. */
export function undocumented(route: Route, answer: Answer): string | undefined {
  const method = route.method.toLowerCase();
  const described = document.paths[route.path][method].responses[answer.status];
  // Answers of errors are components, named once for all operations.
  const shared = described?.$ref?.split('/').at(-1) as string | undefined;
  const content = (shared ? document.components.responses[shared] : described)?.content;
  const where = `${route.method} ${route.path} answered ${answer.status}`;
  if (!(answer.status in document.paths[route.path][method].responses))
    return `${where}, which is not documented: ${JSON.stringify(answer.body)}`;
  if (!content) return answer.body === '' ? undefined : `${where} with a body although none is documented`;
  const full = String(answer.headers['content-type']);
  const type = full in content ? full : full.split(';')[0]!;
  if (!content[type]) return `${where} as ${type}, which is not documented`;
  if (type !== 'application/json') return undefined;
  const place = shared
    ? `components/responses/${shared}`
    : `paths/${escaped(route.path)}/${method}/responses/${answer.status}`;
  const at = `document#/${place}/content/application~1json/schema`;
  let validate = validators.get(at);
  if (!validate) validators.set(at, (validate = ajv.compile({ $ref: at })));
  return validate(answer.body)
    ? undefined
    : `${where} with a body that is not the documented one: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(answer.body).slice(0, 600)}`;
}

/** Returns the header with the content type of an example's body. */
export const typeOf = ({ contentType }: Example): Record<string, string> =>
  contentType ? { 'content-type': contentType } : {};

/** Calls an operation with its example. */
export function callExample(caller: Caller, world: World, route: Route, example: Example): Promise<Answer> {
  return caller.call(
    route.method,
    `${example.path ?? world.pathOf(route)}${example.query ?? ''}`,
    example.body,
    typeOf(example),
  );
}

/** Returns the example of an operation. Throws if the operation has a body or a required query and no example: write one. */
export function exampleOf(world: World, route: Route): Example {
  const example = EXAMPLES[route.id];
  if (example) return example(world);
  const required = (route.query as { required?: string[] } | undefined)?.required ?? [];
  if (route.body || required.length > 0)
    throw new Error(
      `${route.id} (${route.method} ${route.path}) has no example: write one in test/suites/examples.ts.`,
    );
  return {};
}

/** Returns the name of the parameter for the size of a page; undefined for operations without pages. */
export function pageSizeOf({ query }: Route): string | undefined {
  const { properties = {} } = (query ?? {}) as { properties?: Record<string, unknown> };
  return 'page' in properties ? ['page_size', 'pageSize'].find((name) => name in properties) : undefined;
}
