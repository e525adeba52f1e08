import { findDiskUse } from '#housekeeping/disk-queries.ts';
import { DiskLimitError } from '#deployments/index.ts';
import type { Platform } from '#platform/context.ts';

const MIB = 2 ** 20;

/** Throws DiskLimitError where an organization takes more disk of a machine than the operator allows it. */
export async function refuseFullDisk(
  { db, settings }: Pick<Platform, 'db' | 'settings'>,
  nodeId: string,
  organizationId: string,
): Promise<void> {
  const { organizationDiskLimitMb: limit } = settings;
  if (limit === 0) return;
  const use = await findDiskUse(db, nodeId, organizationId);
  const total = use.reduce((sum, { bytes }) => sum + Number(bytes), 0);
  if (total <= limit * MIB) return;
  const parts = use.map(({ kind, bytes }) => `${kind}s ${mebibytes(Number(bytes))}`).join(', ');
  throw new DiskLimitError(
    `The organization takes ${mebibytes(total)} of disk on this machine (${parts}), more than the ${limit} MiB that the operator allows. Delete services, or files of their volumes, then deploy again a minute later.`,
  );
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
