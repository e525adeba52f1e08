import type { DiskWarning } from '#deployments/index.ts';
import type { DiskItem, DiskItemKind } from '#runtimes/runtime.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Share of its size at which a volume is reported. */
const NEARLY_FULL = 0.8;

/** Warning about the disk use of an item of a service. */
export interface Verdict {
  code: DiskWarning;
  item: DiskItem;
  message: string;
  /** Reason that is given when the instance or execution is ended. */
  reason?: string;
}

/** Operator's limits; 0 stands for none. */
export interface DiskRules {
  instanceDiskLimitMb: number;
  volumeLimitPercent: number;
}

/** Judges an item by the limits; null if it is within them. Bytes of an incompletely measured tree are a lower bound. */
export function judge(item: DiskItem, sizeBytes: number | undefined, rules: DiskRules): Verdict | null {
  if (item.kind === 'instance' || item.kind === 'task') return judgeWritten(item, rules);
  if (item.kind === 'volume' && sizeBytes !== undefined) return judgeVolume(item, sizeBytes, rules);
  return null;
}

function judgeWritten(item: DiskItem, { instanceDiskLimitMb: limit }: DiskRules): Verdict | null {
  if (limit === 0 || item.bytes <= limit * MIB) return null;
  const reason = `it wrote ${mebibytes(item.bytes)} besides its volumes, more than the ${limit} MiB that the operator allows`;
  const what = item.kind === 'task' ? `The execution ${item.name} was ended` : `${item.name} was started anew`;
  const advice = 'Write what is to be kept, and what is large, into storage';
  return { code: 'INSTANCE_DISK_LIMIT', item, message: `${what}: ${reason}. ${advice}.`, reason };
}

function judgeVolume(item: DiskItem, sizeBytes: number, { volumeLimitPercent: percent }: DiskRules): Verdict | null {
  if (item.bytes < sizeBytes * NEARLY_FULL) return null;
  const takes = `The volume ${item.name} takes ${mebibytes(item.bytes)} of its ${sizeBytes / GIB} GiB`;
  const advice = 'Give it a larger size, or remove files from it';
  if (percent > 0 && item.bytes > (sizeBytes * percent) / 100)
    return {
      code: 'VOLUME_LIMIT',
      item,
      message: `${takes}, more than the ${percent} % that the operator allows: the service is ended, and its files are kept. Give the volume a larger size, then deploy.`,
    };
  if (item.bytes >= sizeBytes) return { code: 'VOLUME_FULL', item, message: `${takes}: it is full. ${advice}.` };
  return { code: 'VOLUME_NEARLY_FULL', item, message: `${takes}: it is nearly full. ${advice}.` };
}

/** Use of disk of one organization, by kind. */
export type DiskTotals = Map<DiskItemKind | 'checkout', { bytes: number; isWhole: boolean }>;

/** Adds up items by the organization of their services. Items of removed services belong to no organization. */
export function totalsOf(
  items: readonly Pick<DiskItem, 'kind' | 'serviceId' | 'bytes' | 'isWhole'>[],
  organizationOf: (serviceId: string) => string | undefined,
): Map<string, DiskTotals> {
  const totals = new Map<string, DiskTotals>();
  for (const { kind, serviceId, bytes, isWhole } of items) {
    const organizationId = organizationOf(serviceId);
    if (organizationId !== undefined) addTo(totals, organizationId, kind, { bytes, isWhole });
  }
  return totals;
}

/** Adds bytes of a kind to the totals of an organization. */
export function addTo(
  totals: Map<string, DiskTotals>,
  organizationId: string,
  kind: DiskItemKind | 'checkout',
  { bytes, isWhole }: { bytes: number; isWhole: boolean },
): void {
  const own: DiskTotals = totals.get(organizationId) ?? new Map();
  totals.set(organizationId, own);
  const former = own.get(kind) ?? { bytes: 0, isWhole: true };
  own.set(kind, { bytes: former.bytes + bytes, isWhole: former.isWhole && isWhole });
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
