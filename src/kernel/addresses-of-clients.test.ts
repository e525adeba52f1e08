import { describe, expect, test } from 'vitest';
import { addressOfClient, isWithin } from '#kernel/addresses.ts';

describe('the address of a client', () => {
  test.each([
    ['the word of nobody counts without trusted proxies', '192.0.2.1', '203.0.113.9', [], '192.0.2.1'],
    ['the word of a stranger does not count', '192.0.2.1', '203.0.113.9', ['10.0.0.0/8'], '192.0.2.1'],
    ['the word of a trusted proxy counts', '10.0.0.1', '203.0.113.9', ['10.0.0.0/8'], '203.0.113.9'],
    ['what the client wrote before it does not', '10.0.0.1', '6.6.6.6, 203.0.113.9', ['10.0.0.0/8'], '203.0.113.9'],
    ['a chain of trusted proxies is followed', '10.0.0.1', '203.0.113.9, 10.0.0.2', ['10.0.0.0/8'], '203.0.113.9'],
    ['what is no address ends the chain', '10.0.0.1', '203.0.113.9, unknown, 10.0.0.2', ['10.0.0.0/8'], '10.0.0.2'],
    ['a trusted proxy that says nothing is the client', '10.0.0.1', undefined, ['10.0.0.0/8'], '10.0.0.1'],
    ['mapped addresses are those of IPv4', '::ffff:10.0.0.1', '203.0.113.9', ['10.0.0.0/8'], '203.0.113.9'],
  ] as const)('%s', (_what, peer, said, trusted, client) => {
    expect(addressOfClient(peer, said, trusted)).toBe(client);
  });

  test('single addresses and networks of both families are matched', () => {
    expect(isWithin('::1', ['::1'])).toBe(true);
    expect(isWithin('2001:db8::1', ['10.0.0.0/8', '2001:db8::/32'])).toBe(true);
    expect(isWithin('2001:db9::1', ['2001:db8::/32'])).toBe(false);
    expect(isWithin('no address', ['0.0.0.0/0'])).toBe(false);
  });
});
