// Who may do what (docs/access.md), from the table of actions.
import { writeFileSync } from 'node:fs';
import { accessTable } from './access-table.ts';

writeFileSync('docs/access.md', accessTable());
