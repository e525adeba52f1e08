import { listLargest } from '#housekeeping/disk-queries.ts';
import type { Finding } from '#kernel/finding.ts';
import { askDatabase } from '#platform/database/inspect.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Looks at which organizations take most of the disk of machines, and whether they are limited. Starts nothing. */
export async function inspectDisk(settings: Settings): Promise<Finding> {
  const name = 'disk';
  const found = await askDatabase(settings, listLargest);
  if (typeof found === 'string') return { name, state: 'ok', found: `not looked at: ${found}`, advice: [] };
  if (found.length === 0) return { name, state: 'ok', found: 'not measured yet', advice: [] };
  const limitMb = settings.organizationDiskLimitMb;
  const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20);
  const [largest] = found;
  const over = limitMb === 0 ? [] : found.filter(({ bytes }) => mebibytes(bytes) > limitMb);
  const advice = over.map(
    ({ organization, machine, bytes }) =>
      `The organization ${organization} takes ${mebibytes(bytes)} MiB on ${machine}, more than its ${limitMb} MiB: its deployments and runs are refused.`,
  );
  if (limitMb === 0 && new Set(found.map(({ organization }) => organization)).size > 1)
    advice.push('Set QUARTERDECK_ORGANIZATION_DISK_LIMIT_MB: one organization can fill the disk of the others.');
  const most = `organization ${largest!.organization} takes ${mebibytes(largest!.bytes)} MiB on ${largest!.machine}, the most of all`;
  return { name, state: advice.length > 0 ? 'missing' : 'ok', found: most, advice };
}
