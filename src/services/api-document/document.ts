import { REQUEST_EXAMPLES } from '#services/api-document/request-examples.ts';
import { describeTag } from '#services/api-document/tags.ts';
import { makeDocument } from '#platform/http/openapi.ts';
import type { Route } from '#platform/http/route.ts';

/** The document of the interface, with the descriptions of its tags and its examples. */
export const makeApiDocument = (routes: Route[]) => makeDocument(routes, { describeTag, examples: REQUEST_EXAMPLES });
