// The API document (openapi.json), made from the endpoint values.
import { writeFileSync } from 'node:fs';
import { allRoutes } from '#app/routes.ts';
import { makeApiDocument } from '#services/api-document/document.ts';

writeFileSync('openapi.json', `${JSON.stringify(makeApiDocument(allRoutes()), null, 1)}\n`);
