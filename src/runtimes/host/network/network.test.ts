import { expect, test } from 'vitest';
import {
  freeHost,
  freeSubnet,
  hardwareAddress,
  hardwareAddressOf,
  hostsFile,
  kernelName,
  subnet,
} from '#runtimes/host/network/address-plan.ts';
import { rulesOf } from '#runtimes/host/network/firewall.ts';

test('an environment gets a network that neither we nor the machine use, the same again where it is free', () => {
  const first = freeSubnet('environment', new Set(), [])!;
  expect(freeSubnet('environment', new Set(), ['default', '192.0.2.0/24'])).toBe(first);
  expect(freeSubnet('environment', new Set([first]), [])).toBe((first + 1) % 256);
  expect(freeSubnet('environment', new Set(), [subnet(first)])).toBe((first + 1) % 256);
  expect(freeSubnet('environment', new Set(), ['10.212.0.0/17', '10.212.128.0/17'])).toBeNull();
  expect(freeSubnet('environment', new Set(), ['10.0.0.0/8'])).toBeNull();
});

test('hosts are given from .2 to .254', () => {
  expect(freeHost(new Set())).toBe(2);
  expect(freeHost(new Set([2, 4]))).toBe(3);
  expect(freeHost(new Set(Array.from({ length: 253 }, (_, n) => n + 2)))).toBeNull();
});

test('a hosts file lists all addresses of a name', () => {
  const names = [
    { hostname: 'app-z1', addresses: ['10.212.0.2', '10.212.0.3'] },
    { hostname: 'app-z2', addresses: [] },
  ];
  expect(hostsFile(names)).toBe('127.0.0.1 localhost\n::1 localhost\n10.212.0.2 app-z1\n10.212.0.3 app-z1\n');
});

test('names fit the kernel, and hardware addresses are local ones of a single machine', () => {
  expect(kernelName('qdh', 'installation', 'environment')).toMatch(/^qdh[0-9a-f]{11}$/);
  expect(hardwareAddress('qdh1')).toMatch(/^02(:[0-9a-f]{2}){5}$/);
  expect(hardwareAddressOf(5, 9)).toBe('02:71:0a:d4:05:09');
});

test('rules: siblings reach each other, other environments are dropped, the rest of the world is let through', () => {
  expect(rulesOf('qdh1', '10.212.5.0/24').map(({ table, chain, rule }) => [table, chain, ...rule].join(' '))).toEqual([
    'filter FORWARD -i qdh1 -o qdh1 -j ACCEPT',
    'filter FORWARD -i qdh1 -o qdh+ -j DROP',
    'filter FORWARD -i qdh1 -j ACCEPT',
    'filter FORWARD -o qdh1 -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT',
    'nat POSTROUTING -s 10.212.5.0/24 ! -o qdh1 -j MASQUERADE',
  ]);
});
