// The page docs/kinds.md: which kind of service has which capability, from the endpoints. gen-kinds.ts writes it; a suite compares.
import { allRoutes } from '#app/routes.ts';
import { SERVICE_KINDS, type ServiceKind } from '#services/service/holder.ts';
import { CAPABILITY_ROWS, hasCapability } from '#services/kinds/matrix.ts';
import { KINDS } from '#services/mount.ts';
import { table } from './table.ts';

const nameOf = (kind: ServiceKind): string => kind.toLowerCase().replaceAll('_', '-');
const linkOf = (kind: ServiceKind): string => `[${nameOf(kind)}](kinds/${pageOf(kind)})`;

/** The file of a kind's own page in docs/kinds. */
export const pageOf = (kind: ServiceKind): string => `${nameOf(kind)}.md`;

export function kindsPage(): string {
  const routes = allRoutes();
  const rows = CAPABILITY_ROWS.map((row) => [
    row.name,
    ...KINDS.map((kind) => (hasCapability(routes, kind, row) ? 'yes' : '')),
  ]);
  return [
    '# Kinds of service and what they have',
    '',
    'Each kind of service has a page with an example. The table says which operations each kind has. `npm run gen` writes it from the endpoints, and `test/suites/kinds/kinds.test.ts` tests each cell. To add a kind see [adding a kind](contributing/adding-a-kind.md).',
    '',
    `Pages: ${SERVICE_KINDS.map(linkOf).join(' · ')}.`,
    '',
    table(['capability', ...KINDS.map((kind) => kind.path)], rows),
    '',
  ].join('\n');
}
