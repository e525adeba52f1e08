import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkPool, freeAddress, freeSubnet, parseRoutes } from './address-pool.ts';

describe('subnets', () => {
  test('the lowest subnet that nothing overlaps is given', () => {
    expect(freeSubnet('10.201.0.0/16', [])).toBe('10.201.0.0/26');
    expect(freeSubnet('10.201.0.0/16', ['10.201.0.0/26', '10.201.0.128/26'])).toBe('10.201.0.64/26');
  });

  test('networks of other sizes in the pool are avoided, larger and smaller ones', () => {
    expect(freeSubnet('10.201.0.0/16', ['10.201.0.0/24'])).toBe('10.201.1.0/26');
    expect(freeSubnet('10.201.0.0/16', ['10.201.0.5/32', '10.201.0.64/30'])).toBe('10.201.0.128/26');
    expect(freeSubnet('10.201.0.0/16', ['10.0.0.0/8'])).toBeNull();
  });

  test('IPv6 networks and those elsewhere do not matter', () => {
    expect(freeSubnet('10.201.0.0/16', ['fd00::/64', '172.17.0.0/16'])).toBe('10.201.0.0/26');
  });

  test('a pool holds as many environments as it has subnets, then none', () => {
    const used: string[] = [];
    for (let next = freeSubnet('10.201.0.0/24', used); next !== null; next = freeSubnet('10.201.0.0/24', used))
      used.push(next);
    expect(used).toEqual(['10.201.0.0/26', '10.201.0.64/26', '10.201.0.128/26', '10.201.0.192/26']);
  });

  test('a pool that holds no subnet is refused', () => {
    expect(() => checkPool('10.201.0.0/16')).not.toThrow();
    expect(() => checkPool('10.201.0.0/27')).toThrow(/address pool/i);
    expect(() => checkPool('fd00::/48')).toThrow(/IPv4/);
    expect(() => checkPool('nonsense')).toThrow(/IPv4/);
  });
});

describe('addresses', () => {
  test('network, gateway and broadcast addresses are never given', () => {
    const taken = new Set<string>();
    for (let next = freeAddress('10.201.0.64/26', taken); next !== null; next = freeAddress('10.201.0.64/26', taken))
      taken.add(next);
    expect(taken.size).toBe(61);
    for (const never of ['10.201.0.64', '10.201.0.65', '10.201.0.127']) expect(taken).not.toContain(never);
  });

  test('an address given up comes round last', () => {
    expect(freeAddress('10.201.0.0/26', new Set(), '10.201.0.2')).toBe('10.201.0.3');
    expect(freeAddress('10.201.0.0/26', new Set(), '10.201.0.62')).toBe('10.201.0.2');
  });

  test('whatever is taken, an address is free and inside the subnet', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 2, max: 62 })), fc.integer({ min: 2, max: 62 }), (taken, after) => {
        const names = new Set(taken.map((last) => `10.201.0.${last}`));
        const given = freeAddress('10.201.0.0/26', names, `10.201.0.${after}`);
        if (taken.length === 61) return given === null;
        const last = Number(given!.split('.')[3]);
        return !names.has(given!) && last >= 2 && last <= 62;
      }),
    );
  });
});

test('the machine’s routes are read without its default route', () => {
  const table = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
    'br-1\t4000C90A\t00000000\t0001\t0\t0\t0\tC0FFFFFF\t0\t0\t0',
    '',
  ].join('\n');
  expect(parseRoutes(table)).toEqual(['192.0.2.0/24', '10.201.0.64/26']);
});
