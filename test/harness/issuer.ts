import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

export const AUDIENCE = 'quarterdeck-test';

/** Real identity provider on loopback: discovery, keys, signed tokens. */
export interface Issuer {
  url: string;
  /** Settings that name this identity provider. */
  settings: Record<string, string>;
  /** Returns a signed token; `null` leaves a claim out. */
  sign(
    claims: Record<string, unknown>,
    options?: { algorithm?: string; kid?: string; key?: CryptoKey },
  ): Promise<string>;
  /** Returns the published public key of an algorithm. */
  publicKey(algorithm: string): JWK;
  /** Returns the number of requests for a path. */
  asked(path: string): number;
  /** Answers every request with this status until it is set back to 200. */
  status: number;
  /** Path whose document has 300 KiB more. */
  long: string | undefined;
  close(): Promise<void>;
}

export async function startIssuer(algorithms = ['RS256', 'ES256', 'EdDSA']): Promise<Issuer> {
  const keys = new Map<string, { key: CryptoKey; jwk: JWK }>();
  for (const algorithm of algorithms) {
    const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
    keys.set(algorithm, {
      key: privateKey,
      jwk: { ...(await exportJWK(publicKey)), kid: `key-${algorithm}`, alg: algorithm, use: 'sig' },
    });
  }
  const asked = new Map<string, number>();
  const issuer = { status: 200 } as Issuer;
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.set(path, (asked.get(path) ?? 0) + 1);
    const documents: Record<string, unknown> = {
      '/.well-known/openid-configuration': { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` },
      '/keys': { keys: [...keys.values()].map(({ jwk }) => jwk) },
    };
    response.writeHead(path in documents ? issuer.status : 404, { 'content-type': 'application/json' });
    const more = path === issuer.long ? { more: 'x'.repeat(300 * 1024) } : {};
    response.end(JSON.stringify({ ...(documents[path] as object), ...more }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(issuer, {
    url,
    settings: { QUARTERDECK_OIDC_ISSUER: url, QUARTERDECK_OIDC_AUDIENCE: AUDIENCE },
    sign: (claims: Record<string, unknown>, options: { algorithm?: string; kid?: string; key?: CryptoKey } = {}) => {
      const { algorithm = 'RS256', kid = `key-${algorithm}`, key = keys.get(algorithm)!.key } = options;
      const now = Math.floor(Date.now() / 1000);
      const all = { iss: url, aud: AUDIENCE, iat: now, exp: now + 300, ...claims };
      const said = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
      return new SignJWT(said).setProtectedHeader({ alg: algorithm, kid }).sign(key);
    },
    publicKey: (algorithm: string) => keys.get(algorithm)!.jwk,
    asked: (path: string) => asked.get(path) ?? 0,
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  });
}
