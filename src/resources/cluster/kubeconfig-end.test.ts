import { expect, test } from 'vitest';
import { endOfAccess } from '#resources/cluster/kubeconfig-end.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const webToken = (payload: unknown) =>
  ['{"alg":"none"}', JSON.stringify(payload), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
const END = new Date('2027-01-31T09:05:00.000Z');
const IN_TIME = webToken({ exp: END.getTime() / 1000 });
const { cert, key } = selfSigned();
const LAST = new Date('2049-12-31T23:59:59.000Z');

test.each([
  ['a JSON Web Token', IN_TIME, null, END],
  ['a client certificate', null, cert, LAST],
  ['the first certificate of a chain', null, cert + selfSigned().cert, LAST],
  ['the earlier of the two', IN_TIME, cert, END],
  ['a token without an end', webToken({ sub: 'x' }), null, null],
  ['a token whose end is no number', webToken({ exp: '1' }), null, null],
  ['a token whose end no calendar has', webToken({ exp: 1e300 }), null, null],
  ['a token that is null', webToken(null), null, null],
  ['an opaque token', 'abc.def.ghi', null, null],
  ['a token with one part', 'abc', null, null],
  ['text that is no certificate', null, 'abc', null],
  ['nothing', null, null, null],
])('the end of a kubeconfig is that of %s', (_, token, certificate, end) => {
  expect(endOfAccess({ token, certificate: certificate === null ? null : { certificate, key } })).toEqual(end);
});
