import { expect, test } from 'vitest';
import { signAws } from '#platform/aws/signature.ts';

const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const AT = new Date('2015-08-30T12:36:00Z');

const vanilla = { headers: {}, body: '', region: 'us-east-1', service: 'service' };

/** Examples of AWS (Signature Version 4 test suite: get-vanilla, post-vanilla, get-vanilla-query-order-key-case). */
test.each([
  ['GET', 'https://example.amazonaws.com/', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  ['POST', 'https://example.amazonaws.com/', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  [
    'GET',
    'https://example.amazonaws.com/?Param2=value2&Param1=value1',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
] as const)('%s %s is signed as AWS signs it', async (method, url, signature) => {
  expect(await signAws({ ...vanilla, method, url }, KEYS, AT)).toEqual({
    'x-amz-date': '20150830T123600Z',
    authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=${signature}`,
  });
});

test('every header of the caller is signed, its content type too', async () => {
  const signed = await signAws(
    {
      ...vanilla,
      method: 'GET',
      url: 'https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
      service: 'iam',
    },
    KEYS,
    AT,
  );
  expect(signed.authorization).toContain('Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7');
  expect(signed['content-type']).toBe('application/x-www-form-urlencoded; charset=utf-8');
});

test('the token of a session is sent and signed', async () => {
  const request = { ...vanilla, method: 'POST' as const, url: 'https://example.amazonaws.com/' };
  const headers = await signAws(request, { ...KEYS, sessionToken: 'session' }, AT);
  expect(headers['x-amz-security-token']).toBe('session');
  expect(headers.authorization).toContain('SignedHeaders=host;x-amz-date;x-amz-security-token,');
});

test('parameters are signed in the order of their names, of which one may begin another', async () => {
  const sign = (query: string) =>
    signAws({ ...vanilla, method: 'GET', url: `https://example.amazonaws.com/?${query}` }, KEYS, AT);
  expect(await sign('B4a=1&B=2')).toEqual(await sign('B=2&B4a=1'));
});

test('a mistyped access key is left to AWS to refuse', async () => {
  const keys = { ...KEYS, accessKeyId: 'AKIA\n€' };
  const signed = await signAws({ ...vanilla, method: 'GET', url: 'https://example.amazonaws.com/' }, keys, AT);
  expect(signed.authorization).toContain('Credential=AKIA\n€/');
});
