import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';

/**
 * Route of the OpenAPI document, which is public (docs/contributing/rules.md, *Versioning*). The first call generates the text from the
 * endpoints; later calls answer the same text.
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
