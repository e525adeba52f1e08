import { expect, test } from 'vitest';
import { signAws } from '#resources/secret-manager-access/managers/aws-signature.ts';

/** Of AWS's own test suite and documentation. */
const CREDENTIALS = { accessKey: 'AKIDEXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const AT = new Date('2015-08-30T12:36:00Z');
const vanilla = { headers: {}, body: '', service: 'service', region: 'us-east-1' };

test.each([
  [
    'a plain GET',
    { ...vanilla, method: 'GET' as const, url: 'https://example.amazonaws.com/' },
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  [
    'a plain POST',
    { ...vanilla, method: 'POST' as const, url: 'https://example.amazonaws.com/' },
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  [
    'a query, with the parameters in their order',
    { ...vanilla, method: 'GET' as const, url: 'https://example.amazonaws.com/?Param2=value2&Param1=value1' },
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'headers of the caller',
    {
      method: 'GET' as const,
      url: 'https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' },
      body: '',
      service: 'iam',
      region: 'us-east-1',
    },
    '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
  ],
])('%s is signed as AWS signs it', (_what, request, signature) => {
  expect(signAws(request, CREDENTIALS, AT).authorization).toContain(`Signature=${signature}`);
});

test('the token of a session is sent and signed', () => {
  const request = { ...vanilla, method: 'POST' as const, url: 'https://example.amazonaws.com/' };
  const headers = signAws(request, { ...CREDENTIALS, sessionToken: 'session' }, AT);
  expect(headers['x-amz-security-token']).toBe('session');
  expect(headers.authorization).toContain('SignedHeaders=host;x-amz-date;x-amz-security-token,');
});
