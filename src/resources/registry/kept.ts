import { conflict } from '#kernel/errors.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { requiredConfig } from '#resources/registry/configuration.ts';
import type { KindShape } from '#resources/registry/keeping.ts';

/** Columns that rows of registries and of Helm repositories have in common. */
interface KeptRow {
  id: string;
  created_at: Date;
  updated_at: Date;
  name: string;
  kind: string;
  description: string | null;
  url: string;
  config: unknown;
  /** Number of services that use it. */
  services: number;
}

/** Returns the answer for a registry or Helm repository: of its configuration only what is no secret. */
export const toKeptView = (row: KeptRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  kind: row.kind,
  description: row.description ?? '',
  url: row.url,
  associated_services_count: row.services,
  config: row.config as object,
});

/** Lists the kinds, each with the fields that it requires. */
export const availableOf = <Kind extends string>(kinds: readonly Kind[], shapes: Record<Kind, KindShape>) =>
  kinds.map((kind) => ({
    kind,
    required_config: requiredConfig(shapes[kind]),
    is_mandatory: !shapes[kind].anonymous,
  }));

/** Deletes a registry or Helm repository that no service uses; 409 while services use it, also those made meanwhile. */
export async function deleteUnused(what: string, row: KeptRow, remove: () => Promise<unknown>): Promise<void> {
  const used = `Services use the ${what} ${row.name}: give them another first (associatedServices lists them).`;
  if (row.services > 0) throw conflict(used);
  try {
    await remove();
  } catch (error) {
    if (brokenConstraint(error)) throw conflict(used);
    throw error;
  }
}
