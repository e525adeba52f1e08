import { generateKeyPair, SignJWT } from 'jose';
import { createHmac, createPublicKey } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createSessionVerifier } from '#platform/access/oidc.ts';
import { readSettings } from '#platform/settings/index.ts';
import { ok, startTestApp, useApp } from '#test/harness/app.ts';
import { AUDIENCE, startIssuer } from '#test/harness/issuer.ts';

const issuer = await startIssuer();
const app = useApp(issuer.settings);
afterAll(() => issuer.close());

const seconds = (ahead: number): number => Math.floor(Date.now() / 1000) + ahead;
const account = async (token: string) => (await app.session(token).get('/account')).status;
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const claims = (sub: string) => ({ iss: issuer.url, aud: AUDIENCE, sub, iat: seconds(0), exp: seconds(300) });

describe('a session is accepted', () => {
  test.each(['RS256', 'ES256', 'EdDSA'])('when it is signed with %s', async (algorithm) => {
    const token = await issuer.sign({ sub: `by ${algorithm}` }, { algorithm });
    expect(await account(token)).toBe(200);
    ok(await app.anonymous('GET', '/account', undefined, { authorization: `Token ${token}` }), 200);
  });

  test('until a minute after its end, and from a minute before its beginning', async () => {
    expect(await account(await issuer.sign({ sub: 'late', exp: seconds(-50) }))).toBe(200);
    expect(await account(await issuer.sign({ sub: 'early', nbf: seconds(50) }))).toBe(200);
  });

  test('for one of several audiences', async () => {
    expect(await account(await issuer.sign({ sub: 'several', aud: ['other', AUDIENCE] }))).toBe(200);
  });

  test('and its provider is asked for its keys once, not with every request', async () => {
    const token = await issuer.sign({ sub: 'often' });
    await Promise.all(Array.from({ length: 10 }, () => account(token)));
    expect(issuer.asked('/.well-known/openid-configuration')).toBe(1);
    expect(issuer.asked('/keys')).toBe(1);
  });

  test('is not counted by the rate limit', async () => {
    const answer = await app.session(await issuer.sign({ sub: 'free' })).get('/account');
    expect(answer.headers['x-ratelimit-limit']).toBeUndefined();
  });
});

describe('a session is refused', () => {
  const refused: [string, () => Promise<string> | string][] = [
    ['that is over', () => issuer.sign({ sub: 'a', exp: seconds(-70) })],
    ['that has not begun', () => issuer.sign({ sub: 'a', nbf: seconds(70) })],
    ['without an end', () => issuer.sign({ sub: 'a', exp: null })],
    ['without a subject', () => issuer.sign({})],
    ['with an empty subject', () => issuer.sign({ sub: '' })],
    ['of another issuer', () => issuer.sign({ sub: 'a', iss: 'https://elsewhere.example' })],
    ['whose issuer only begins alike', () => issuer.sign({ sub: 'a', iss: `${issuer.url}.example` })],
    ['for another audience', () => issuer.sign({ sub: 'a', aud: 'other' })],
    ['without an audience', () => issuer.sign({ sub: 'a', aud: null })],
    ['whose key nobody has published', () => issuer.sign({ sub: 'a' }, { kid: 'unknown' })],
    [
      'that is signed with a key of somebody else under a published name',
      async () => {
        const { privateKey } = await generateKeyPair('RS256');
        return issuer.sign({ sub: 'a' }, { key: privateKey });
      },
    ],
    ['that is not signed (alg none)', () => `${base64({ alg: 'none', kid: 'key-RS256' })}.${base64(claims('a'))}.`],
    [
      'that is signed with the public key as a secret (HS256)',
      () => {
        const head = `${base64({ alg: 'HS256', kid: 'key-RS256' })}.${base64(claims('a'))}`;
        const pem = createPublicKey({ key: issuer.publicKey('RS256') as never, format: 'jwk' }).export({
          type: 'spki',
          format: 'pem',
        });
        return `${head}.${createHmac('sha256', pem).update(head).digest('base64url')}`;
      },
    ],
    [
      'with another algorithm than its key is for',
      async () => {
        const { privateKey } = await generateKeyPair('PS256');
        return new SignJWT(claims('a')).setProtectedHeader({ alg: 'PS256', kid: 'key-RS256' }).sign(privateKey);
      },
    ],
    [
      'whose claims were changed',
      async () => {
        const [head, , signature] = (await issuer.sign({ sub: 'a' })).split('.');
        return `${head}.${base64(claims('somebody else'))}.${signature}`;
      },
    ],
    [
      'that names a key of its own',
      async () => {
        const { privateKey } = await generateKeyPair('RS256');
        const header = { alg: 'RS256', jku: 'http://127.0.0.1:1/keys', jwk: issuer.publicKey('RS256'), kid: 'x' };
        return new SignJWT(claims('a')).setProtectedHeader(header).sign(privateKey);
      },
    ],
    ...['../../../../../../dev/null', 'http://127.0.0.1:1/keys.json', "' or 1=1 --", '', 'k'.repeat(10_000)].map(
      (kid): (typeof refused)[number] => [
        `whose key is to be found at ${JSON.stringify(kid.slice(0, 30))}`,
        async () => {
          const { privateKey } = await generateKeyPair('RS256');
          return new SignJWT(claims('a')).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey);
        },
      ],
    ),
    [
      'that brings certificates of its own, or an address of some',
      async () => {
        const { privateKey } = await generateKeyPair('RS256');
        const header = { alg: 'RS256', x5u: 'http://127.0.0.1:1/cert.pem', x5c: ['MIIB'], x5t: 'AAAA' };
        return new SignJWT(claims('a')).setProtectedHeader(header).sign(privateKey);
      },
    ],
    [
      'without the name of a key, where several are published, signed by none of them',
      async () => {
        const { privateKey } = await generateKeyPair('ES256');
        return new SignJWT(claims('a')).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
      },
    ],
    [
      'that wants something understood that is not',
      async () => {
        const [, body, signature] = (await issuer.sign({ sub: 'a' })).split('.');
        return `${base64({ alg: 'RS256', kid: 'key-RS256', crit: ['admin'], admin: true })}.${body}.${signature}`;
      },
    ],
    [
      'whose claims are not text (b64)',
      async () => {
        const [, body, signature] = (await issuer.sign({ sub: 'a' })).split('.');
        return `${base64({ alg: 'RS256', kid: 'key-RS256', b64: false, crit: ['b64'] })}.${body}.${signature}`;
      },
    ],
    ['that is encrypted instead of signed', () => `${base64({ alg: 'dir', enc: 'A256GCM' })}..AAAA.AAAA.AAAA`],
    ['with an empty signature', async () => `${(await issuer.sign({ sub: 'a' })).split('.').slice(0, 2).join('.')}.`],
    ['that is no JWT', () => 'eyJhbGciOiJSUzI1NiJ9.x'],
    ['that is nonsense', () => 'nonsense'],
    ['with a header that is no object', () => `${base64(1)}.${base64(claims('a'))}.AA`],
  ];
  test.each(refused)('%s', async (_name, make) => {
    const token = await make();
    const answer = await app.session(token).get('/account');
    expect(answer.status).toBe(401);
    expect(JSON.stringify(answer.body)).not.toContain(token);
  });

  test('without making anybody known', async () => {
    await account(await issuer.sign({ sub: 'never seen', aud: 'other' }));
    const rows = await app.db.selectFrom('user_account').select('id').where('subject', 'like', '%never seen').execute();
    expect(rows).toEqual([]);
  });
});

describe('a person', () => {
  test('who is new becomes a user without an organization, once however often they call at the same time', async () => {
    const sub = newId();
    const token = await issuer.sign({ sub, given_name: 'Ada', family_name: 'L', picture: 'https://p.example/a.png' });
    const answers = await Promise.all(Array.from({ length: 5 }, () => app.session(token).get('/account')));
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    expect(answers[0]!.body).toMatchObject({
      first_name: 'Ada',
      last_name: 'L',
      profile_picture_url: 'https://p.example/a.png',
    });
    expect(ok(await app.session(token).get('/organization'), 200)).toMatchObject({
      results: [],
      pagination: { total_count: 0 },
    });
    const admin = await app.organization();
    ok(await app.session(token).get(`/organization/${admin.organizationId}`), 404);
    ok(await app.session(token).post('/organization', { name: newId() }), 403);
  });

  test('is known by issuer and subject, whatever the address', async () => {
    const email = `${newId()}@a.example`;
    const [one, other] = [
      await issuer.sign({ sub: newId(), email, email_verified: true }),
      await issuer.sign({ sub: newId(), email, email_verified: true }),
    ];
    const ids = await Promise.all(
      [one, other].map(async (token) => ok(await app.session(token).get('/account'), 200).id),
    );
    expect(ids[0]).not.toBe(ids[1]);
  });

  test('is taken over as the provider says now, and an address only when it is verified', async () => {
    const sub = newId();
    const say = async (more: Record<string, unknown>) =>
      ok(await app.session(await issuer.sign({ sub, ...more })).get('/account'), 200);
    expect((await say({ email: 'x@a.example', email_verified: 'true' })).communication_email).toBe('');
    expect((await say({ email: 'x@a.example', email_verified: true })).communication_email).toBe('x@a.example');
    expect((await say({ email: 'y@a.example' })).communication_email).toBe('x@a.example');
    expect((await say({ nickname: 'Ada' })).nickname).toBe('Ada');
    expect((await say({})).nickname).toBe('Ada');
  });
});

describe('the identity provider', () => {
  test('that does not answer is 503 that says so, tells nobody what a bad token is, and is found again', async () => {
    const late = await startIssuer(['RS256']);
    const broken = await startTestApp(late.settings);
    try {
      late.status = 500;
      const token = await late.sign({ sub: 'a' });
      const answer = await broken.session(token).get('/account');
      expect(answer).toMatchObject({ status: 503, body: { message: expect.stringContaining('identity provider') } });
      expect(answer.headers['retry-after']).toBe('5');
      const asked = late.asked('/.well-known/openid-configuration');
      ok(await broken.session(token).get('/account'), 503);
      expect(late.asked('/.well-known/openid-configuration')).toBe(asked);
      ok(await broken.session('nonsense').get('/account'), 401);
      ok(await (await broken.organization()).get('/account'), 200);
    } finally {
      await broken.close();
      await late.close();
    }
  });

  test.each(['/.well-known/openid-configuration', '/keys'])('whose %s has more than 256 KiB is 503', async (path) => {
    const long = await startIssuer(['RS256']);
    const trusting = await startTestApp(long.settings);
    try {
      long.long = path;
      ok(await trusting.session(await long.sign({ sub: 'a' })).get('/account'), 503);
      expect(long.asked(path)).toBe(1);
    } finally {
      await trusting.close();
      await long.close();
    }
  });

  test('that says it is somebody else is not believed', async () => {
    const liar = await startIssuer(['RS256']);
    const trusting = await startTestApp(liar.settings);
    try {
      const { url } = liar;
      const token = await liar.sign({ sub: 'a' });
      liar.url = 'https://elsewhere.example';
      ok(await trusting.session(token).get('/account'), 503);
      liar.url = url;
    } finally {
      await trusting.close();
      await liar.close();
    }
  });

  test('without an audience in the settings is refused at the start, and without an issuer there are no sessions', () => {
    const platform = (settings: Record<string, string>) => ({ ...app.platform, settings: readSettings(settings) });
    expect(() => createSessionVerifier(platform({ QUARTERDECK_OIDC_ISSUER: issuer.url }))).toThrow(
      'QUARTERDECK_OIDC_AUDIENCE',
    );
    expect(createSessionVerifier(platform({}))).toBeNull();
  });
});
