// Which kind of service has which capability (docs/kinds.md), from the endpoints.
import { writeFileSync } from 'node:fs';
import { kindsPage } from './kinds-page.ts';

writeFileSync('docs/kinds.md', kindsPage());
