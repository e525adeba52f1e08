import { ACTIONS, includes, LEVELS, type Level } from '#platform/access/actions.ts';
import { BUILT_IN_ROLES } from '#platform/access/roles.ts';

const SCOPES = LEVELS.filter((level) => level !== 'NONE');

/** Returns the page docs/access.md: the access levels that each action requires. */
export function accessTable(): string {
  return [
    '# Who may do what',
    '',
    'Each operation is an action (`x-action` in `openapi.json`), and each action takes a level: READ, DEPLOY, WRITE or ADMIN. Each level includes the ones before it. A custom role has the levels that it gives in its projects and on its clusters, and reads the rest. A token never does more than its creator may do now.',
    '',
    '`npm run gen` writes this page from `src/platform/access/actions.ts` and `src/platform/access/roles.ts`. The access suite compares it, and tries every operation with every role.',
    '',
    '## Built-in roles',
    '',
    ...table(Object.entries(BUILT_IN_ROLES)),
    '',
    '## Scopes of API tokens',
    '',
    ...table(SCOPES.map((scope) => [scope, scope])),
    '',
  ].join('\n');
}

/** Returns the rows of a table with a row for each action and a column for each role or scope. */
function table(holders: [name: string, held: Level][]): string[] {
  const rows = Object.entries(ACTIONS).map(([action, needed]) => [
    `\`${action}\``,
    needed,
    ...holders.map(([, held]) => (includes(held, needed) ? 'yes' : '–')),
  ]);
  const all = [['Action', 'Takes', ...holders.map(([name]) => name)], ...rows];
  const widths = all[0]!.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  const line = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  return [line(all[0]!), line(widths.map((width) => '-'.repeat(width))), ...all.slice(1).map(line)];
}
