// docs/licences.md, made from package-lock.json; fails for a package whose licence is not allowed.
import { writeFileSync } from 'node:fs';
import { licencesPage } from './licences-page.ts';

writeFileSync('docs/licences.md', licencesPage());
