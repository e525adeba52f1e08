import { describe, expect, test } from 'vitest';
import { addTo, judge, totalsOf, type DiskTotals } from '#housekeeping/disk-rules.ts';
import type { DiskItem } from '#runtimes/runtime.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const RULES = { instanceDiskLimitMb: 100, volumeLimitPercent: 150 };
const item = (changes: Partial<DiskItem> = {}): DiskItem => ({
  kind: 'volume',
  serviceId: 'service',
  name: 'name',
  bytes: 0,
  isWhole: true,
  ...changes,
});

describe('a volume', () => {
  const code = (bytes: number, rules = RULES) => judge(item({ bytes }), 10 * GIB, rules)?.code ?? null;

  test('is reported from 80 % of its size, full from 100 %, and stops its service above the limit', () => {
    expect(code(8 * GIB - 1)).toBeNull();
    expect(code(8 * GIB)).toBe('VOLUME_NEARLY_FULL');
    expect(code(10 * GIB - 1)).toBe('VOLUME_NEARLY_FULL');
    expect(code(10 * GIB)).toBe('VOLUME_FULL');
    expect(code(15 * GIB)).toBe('VOLUME_FULL');
    expect(code(15 * GIB + 1)).toBe('VOLUME_LIMIT');
  });

  test('stops nothing where the operator sets no limit, and is not judged without a size', () => {
    expect(code(1000 * GIB, { ...RULES, volumeLimitPercent: 0 })).toBe('VOLUME_FULL');
    expect(judge(item({ bytes: 1000 * GIB }), undefined, RULES)).toBeNull();
  });

  test('is named with what it takes and what would help', () => {
    expect(judge(item({ bytes: 12 * GIB }), 10 * GIB, RULES)!.message).toBe(
      'The volume name takes 12288 MiB of its 10 GiB: it is full. Give it a larger size, or remove files from it.',
    );
  });
});

describe('an instance', () => {
  test('may write up to its limit, and is ended above it, also where not all of it was seen', () => {
    const of = (bytes: number, changes: Partial<DiskItem> = {}) =>
      judge(item({ kind: 'instance', bytes, ...changes }), undefined, RULES);
    expect(of(100 * MIB)).toBeNull();
    expect(of(100 * MIB + 1, { isWhole: false })).toMatchObject({ code: 'INSTANCE_DISK_LIMIT' });
    expect(of(200 * MIB)!.reason).toBe(
      'it wrote 200 MiB besides its volumes, more than the 100 MiB that the operator allows',
    );
    expect(
      judge(item({ kind: 'instance', bytes: 200 * GIB }), undefined, { ...RULES, instanceDiskLimitMb: 0 }),
    ).toBeNull();
  });

  test('is not held to account for its image or its log', () => {
    for (const kind of ['image', 'log'] as const)
      expect(judge(item({ kind, bytes: 200 * GIB }), undefined, RULES)).toBeNull();
  });
});

test('an organization takes what its services take, and services that are gone count for none', () => {
  const items = [
    item({ bytes: 1 }),
    item({ bytes: 2, isWhole: false }),
    item({ kind: 'log', bytes: 4 }),
    item({ serviceId: 'gone', bytes: 8 }),
  ];
  const totals: Map<string, DiskTotals> = totalsOf(items, (id) => (id === 'gone' ? undefined : 'organization'));
  addTo(totals, 'organization', 'checkout', { bytes: 16, isWhole: true });
  expect([...totals.keys()]).toEqual(['organization']);
  expect(Object.fromEntries(totals.get('organization')!)).toEqual({
    volume: { bytes: 3, isWhole: false },
    log: { bytes: 4, isWhole: true },
    checkout: { bytes: 16, isWhole: true },
  });
});
