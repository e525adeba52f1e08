import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';

/**
 * The document of the interface (docs/contributing/rules.md, *Versioning*), for anybody. It is made when it is first asked for, from the endpoints themselves, and kept as
 * text.
 */
export function documentRoute(others: () => Route[]): Route {
  let text: string | undefined;
  return defineRoute({
    id: 'getOpenApiDocument',
    method: 'GET',
    path: '/openapi.json',
    tag: 'Document',
    summary: 'Get the description of the interface',
    description: 'OpenAPI 3.0.',
    action: 'public',
    answer: { status: 200, body: Type.Object({}, { additionalProperties: true }), contentType: 'application/json' },
    readsOnlyTarget: true,
    handler: async () => {
      if (text === undefined) {
        const { makeApiDocument } = await import('#services/api-document/document.ts');
        text ??= JSON.stringify(makeApiDocument(others()));
      }
      return text;
    },
  });
}
