import { expect, test } from 'vitest';
import { pushProblem } from './push.ts';

const REPOSITORY = 'registry.example.com/team/app';

test.each([
  ["name unknown: The repository with name 'team/app' does not exist", true, /makes none by itself: create it there/],
  ['denied: requested access to the resource is denied', true, /check user name, password, their right to write/],
  ['no basic auth credentials', false, /wants credentials to push .*user name and a password/],
  ['unauthorized: authentication required', true, /does not let these credentials push/],
  ['received unexpected HTTP status: 507 Insufficient Storage', true, /has no room .*quota/],
  ['http: server gave HTTP response to HTTPS client', true, /has no TLS.*insecure-registries/],
  ['dial tcp 10.0.0.1:443: connect: connection refused', true, /cannot be reached by the container engine/],
  ['x509: certificate signed by unknown authority', true, /cannot be reached .*certificate/],
  ['manifest invalid: something else', true, /^The image cannot be pushed to registry\.example\.com\/team\/app\.$/],
])('a push that fails with %j tells what would help', (said, withCredentials, message) => {
  expect(pushProblem(REPOSITORY, said, withCredentials)).toMatch(message);
});
