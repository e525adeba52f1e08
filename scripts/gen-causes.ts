// The known causes of failures (docs/causes.md).
import { writeFileSync } from 'node:fs';
import { causesPage } from './causes-page.ts';

writeFileSync('docs/causes.md', causesPage());
