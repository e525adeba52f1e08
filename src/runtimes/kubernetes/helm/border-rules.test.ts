import { describe, expect, test } from 'vitest';
import { decide, parseTarget } from './border-rules.ts';

const OWN = { namespace: 'qd-own', allowClusterWide: false };
const TRUSTED = { ...OWN, allowClusterWide: true };
const refusal = (method: string, path: string, border = OWN) => decide(method, parseTarget(path), border).refusal;

describe('a chart of an environment', () => {
  test.each([
    ['GET', '/version'],
    ['GET', '/api'],
    ['GET', '/api/v1'],
    ['GET', '/apis'],
    ['GET', '/apis/apps/v1'],
    ['GET', '/openapi/v3/apis/apps/v1'],
    ['GET', '/api/v1/namespaces/qd-own'],
    ['GET', '/api/v1/namespaces/qd-own/secrets'],
    ['POST', '/api/v1/namespaces/qd-own/secrets'],
    ['PATCH', '/apis/apps/v1/namespaces/qd-own/deployments/web'],
    ['DELETE', '/apis/apps/v1/namespaces/qd-own/deployments/web'],
    ['GET', '/api/v1/namespaces/qd-own/pods/web/log'],
    ['PATCH', '/apis/apps/v1/namespaces/qd-own/deployments/web/scale'],
    ['GET', '/apis/example.com/v1/namespaces/qd-own/widgets/system%3Aweb'],
  ])('may send %s %s', (method, path) => {
    expect(refusal(method, path)).toBeNull();
  });

  test.each([
    ['GET', '/api/v1/namespaces/qd-other/secrets'],
    ['GET', '/api/v1/namespaces/default/configmaps/a'],
    ['GET', '/api/v1/secrets'],
    ['GET', '/api/v1/nodes'],
    ['GET', '/api/v1/namespaces'],
    ['GET', '/api/v1/namespaces/qd-other'],
    ['PATCH', '/api/v1/namespaces/qd-own'],
    ['DELETE', '/api/v1/namespaces/qd-own'],
    ['PUT', '/api/v1/namespaces/qd-own/finalize'],
    ['PATCH', '/api/v1/namespaces/qd-own/services/web/status'],
    ['DELETE', '/api/v1/namespaces/qd-own/pods'],
    ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'],
    ['GET', '/api/v1/watch/namespaces/qd-own/secrets'],
    ['GET', '/api/v1/proxy/namespaces/qd-own/services/web'],
    ['GET', '/api/v1/namespaces/qd-own/pods/web/exec'],
    ['POST', '/api/v1/namespaces/qd-own/pods/web/attach'],
    ['POST', '/api/v1/namespaces/qd-own/pods/web/portforward'],
    ['GET', '/api/v1/namespaces/qd-own/services/web/proxy'],
    ['GET', '/api/v1/namespaces/qd-own/services/web/proxy/admin'],
    ['POST', '/api/v1/namespaces/qd-own/serviceaccounts/default/token'],
    ['POST', '/apis/authentication.k8s.io/v1/tokenreviews'],
    ['POST', '/apis/authorization.k8s.io/v1/namespaces/qd-own/localsubjectaccessreviews'],
    ['POST', '/version'],
    ['CONNECT', '/api/v1/namespaces/qd-own/pods'],
    ['OPTIONS', '/api/v1/namespaces/qd-own/pods'],
    ['GET', '/metrics'],
    ['GET', '/logs/kube-apiserver.log'],
  ])('may not send %s %s', (method, path) => {
    expect(refusal(method, path)).not.toBeNull();
  });

  test.each([
    '/api/v1/namespaces/qd-own/../qd-other/secrets',
    '/api/v1/namespaces/qd-own/%2e%2e/qd-other/secrets',
    '/api/v1/namespaces/qd-own%2f..%2fqd-other/secrets',
    '/api/v1/namespaces/qd-own/secrets/..%2f..%2fqd-other%2fsecrets',
    '/api/v1//namespaces/qd-other/secrets',
    '//api/v1/namespaces/qd-own/secrets',
    '/api/v1/namespaces/qd-own/secrets/',
    '/api/v1/namespaces/qd-own/./secrets',
    '/api/v1/namespaces/qd-own/secrets%3flimit=1',
    '/api/v1/namespaces/qd-own/secrets%23a',
    '/api/v1/namespaces/qd-own/secrets/%00',
    '/api/v1/namespaces/qd-own/secrets/a%0d%0aHost:%20b',
    '/api/v1/namespaces/qd-own/secrets/%252e%252e',
    '/api/v1/namespaces/qd-own/secrets/a\\b',
    '/api/v1/namespaces/qd-own/secrets/%ff',
    'api/v1/namespaces/qd-own/secrets',
    '',
  ])('is refused the path %j, which could be read in two ways', (path) => {
    expect(parseTarget(path)).toBeNull();
    expect(refusal('GET', path, TRUSTED)).not.toBeNull();
  });

  test('sends a path that was made anew', () => {
    expect(parseTarget('/api/v1/namespaces/%71d-own/secrets/a%20b')).toMatchObject({
      path: '/api/v1/namespaces/qd-own/secrets/a%20b',
      namespace: 'qd-own',
      resource: 'secrets',
      name: 'a b',
    });
  });
});

describe('a chart that may have objects of the whole cluster', () => {
  test.each([
    ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { mustBeClusterWide: true }],
    ['PATCH', '/apis/rbac.authorization.k8s.io/v1/clusterroles/web', { mayBeOthers: true }],
    ['GET', '/api/v1/nodes', { mustBeClusterWide: true }],
    ['GET', '/api/v1/configmaps', { mustBeClusterWide: true }],
    ['POST', '/api/v1/namespaces', { mustBeClusterWide: true }],
    ['GET', '/api/v1/namespaces/shop', { foreign: 'shop' }],
    ['POST', '/api/v1/namespaces/shop/configmaps', { foreign: 'shop' }],
    ['DELETE', '/api/v1/namespaces/qd-own/configmaps/a', { mayBeOthers: true, foreign: null }],
  ])('has %s %s looked up', (method, path, checks) => {
    expect(decide(method, parseTarget(path), TRUSTED)).toMatchObject({ refusal: null, ...checks });
  });

  test.each([
    ['GET', '/api/v1/secrets'],
    ['GET', '/api/v1/namespaces/kube-system/secrets'],
    ['GET', '/api/v1/namespaces/kube-system/secrets/token'],
    ['POST', '/api/v1/namespaces/shop/serviceaccounts/default/token'],
    ['GET', '/api/v1/namespaces'],
    ['DELETE', '/api/v1/nodes'],
    ['GET', '/api/v1/nodes/node/proxy'],
    ['DELETE', '/api/v1/namespaces/qd-own'],
  ])('may not send %s %s', (method, path) => {
    expect(refusal(method, path, TRUSTED)).not.toBeNull();
  });
});
