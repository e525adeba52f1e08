import { describe, expect, test } from 'vitest';
import { OutgoingError, type HttpClient, type OutgoingRequest } from '#platform/http-client/index.ts';
import { createEcrRepository, ecrLogin } from '#resources/registry/ecr.ts';

const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a-very-secret-key' };
const PARIS = {
  template: 'https://api.ecr.{region}.{domain}',
  region: 'eu-west-3',
  keys,
  at: new Date('2026-01-02T03:04:05Z'),
};

/** AWS, which answers one thing and keeps what it was asked. */
function aws(status: number, body: unknown) {
  const asked: [string, OutgoingRequest | undefined][] = [];
  const request: HttpClient['request'] = async (url, options) => {
    asked.push([url, options]);
    return { status, headers: {}, body: Buffer.from(JSON.stringify(body)), truncated: false };
  };
  return { asked, http: { request } as HttpClient };
}

describe('a password for a registry of Amazon', () => {
  test('is asked of the region with a signature that has no key in it', async () => {
    const authorizationToken = Buffer.from('AWS:good:password').toString('base64');
    const { asked, http } = aws(200, { authorizationData: [{ authorizationToken, expiresAt: 1 }] });
    expect(await ecrLogin({ ...PARIS, http })).toEqual({ username: 'AWS', password: 'good:password' });
    const [[url, request]] = asked as [[string, OutgoingRequest]];
    expect(url).toBe('https://api.ecr.eu-west-3.amazonaws.com/');
    expect(request.headers).toMatchObject({
      'x-amz-target': 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken',
      authorization: expect.stringMatching(/Credential=AKIDEXAMPLE\/20260102\/eu-west-3\/ecr\/aws4_request/),
    });
    expect(JSON.stringify(asked)).not.toContain(keys.secretAccessKey);
  });

  test.each([
    [400, { __type: 'com.amazon#UnrecognizedClientException', message: 'AKIDEXAMPLE is bad' }, 'unauthorized'],
    [403, {}, 'unauthorized'],
    [500, {}, 'unreachable'],
    [200, { authorizationData: [] }, 'unreachable'],
    [200, null, 'unreachable'],
  ])('that AWS answers with %i and %j is refused', async (status, body, failure) => {
    const refused = ecrLogin({ ...PARIS, http: aws(status, body).http });
    await expect(refused).rejects.toMatchObject({ failure, message: expect.not.stringContaining('AKIDEXAMPLE') });
  });

  test('that cannot be asked for is refused', async () => {
    const request = () => Promise.reject(new OutgoingError('timeout', 'no answer'));
    await expect(ecrLogin({ ...PARIS, http: { request } as unknown as HttpClient })).rejects.toMatchObject({
      failure: 'unreachable',
    });
  });
});

describe('a repository of Amazon', () => {
  const create = (status: number, body: unknown) => {
    const { asked, http } = aws(status, body);
    return { asked, created: createEcrRepository({ ...PARIS, http }, 'team/app', { team: 'shop' }) };
  };

  test('is created with the tags of the cluster, and one that exists is no error', async () => {
    const { asked, created } = create(200, {});
    await created;
    const [[, request]] = asked as [[string, OutgoingRequest]];
    expect(request.headers).toMatchObject({ 'x-amz-target': 'AmazonEC2ContainerRegistry_V20150921.CreateRepository' });
    expect(JSON.parse(String(request.body))).toEqual({
      repositoryName: 'team/app',
      tags: [{ Key: 'team', Value: 'shop' }],
    });
    await create(400, { __type: 'RepositoryAlreadyExistsException' }).created;
  });

  test('that the key may not create is told with the right that is missing', async () => {
    await expect(create(400, { __type: 'AccessDeniedException' }).created).rejects.toMatchObject({
      failure: 'unauthorized',
      message: expect.stringMatching(/team\/app in eu-west-3: AccessDeniedException.*ecr:CreateRepository/),
    });
  });
});
