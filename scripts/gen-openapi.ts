// The API document (openapi.json), made from the endpoint values.
import { writeFileSync } from 'node:fs';
import { allRoutes } from '#app/routes.ts';
import { makeDocument } from '#platform/http/openapi.ts';

writeFileSync('openapi.json', `${JSON.stringify(makeDocument(allRoutes()), null, 1)}\n`);
