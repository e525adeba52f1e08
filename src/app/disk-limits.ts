import type { Settings } from '#platform/settings/index.ts';
import type { DiskLimits } from '#runtimes/tools/disk-limits.ts';

/** Limits of the disk that one piece of work may take, from what the operator allows it in MiB. */
export const diskLimits = ({ diskReserveMb }: Pick<Settings, 'diskReserveMb'>, mostMb: number): DiskLimits => ({
  mostBytes: mostMb * 2 ** 20,
  reservedBytes: diskReserveMb * 2 ** 20,
});
