import { expect, test } from 'vitest';
import { passkeySite } from '#platform/settings/address.ts';

const siteAt = (baseUrl: string) => passkeySite({ baseUrl, host: '127.0.0.1', port: 8080 });

test.each([
  ['https://qd.example.com', 'https://qd.example.com', 'qd.example.com'],
  ['https://QD.example.com:8443/path/', 'https://qd.example.com:8443', 'qd.example.com'],
  ['http://localhost:8080', 'http://localhost:8080', 'localhost'],
  ['http://qd.localhost', 'http://qd.localhost', 'qd.localhost'],
])('passkeys at %s are bound to its host, and answers to its origin', (baseUrl, origin, rpId) => {
  expect(siteAt(baseUrl)).toEqual({ origin, rpId });
});

test.each(['', 'http://qd.example.com', 'https://192.0.2.7', 'https://[2001:db8::7]:8443', 'http://127.0.0.1:8080'])(
  'there are no passkeys at "%s"',
  (baseUrl) => {
    expect(siteAt(baseUrl)).toBeNull();
  },
);
