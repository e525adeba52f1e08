import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { listDomainsByServices } from '#services/capabilities/service/custom-domains/index.ts';
import { linksOf, type LinkView } from '#services/capabilities/service/links/links.ts';
import type { Kind } from '#services/kind.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Addresses of services whose kinds have ports, two statements for all of them. */
export async function listLinks(
  context: Context,
  scope: Scope,
  kinds: Kind[],
  rows: ServiceRow[],
): Promise<LinkView[]> {
  const domains = await listDomainsByServices(
    context.db,
    scope,
    rows.map((row) => row.id),
  );
  const byKind = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  return rows.flatMap((row) => {
    const ports = byKind.get(row.kind)?.capabilities?.ports?.(row.spec) ?? [];
    const own = domains
      .filter((domain) => domain.service_id === row.id && domain.proof_state === 'VALIDATED')
      .map(({ domain }) => domain);
    return linksOf(context.settings, row, ports, own);
  });
}
