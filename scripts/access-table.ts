import { ACTIONS, includes, LEVELS, type Level } from '#platform/access/actions.ts';
import { BUILT_IN_ROLES } from '#platform/access/roles.ts';

const SCOPES = LEVELS.filter((level) => level !== 'NONE');

/** Who may do what, as Markdown: docs/access.md. */
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

/** One row an action, one column for each of those that hold a level. */
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
