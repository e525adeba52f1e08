import { createPrivateKey } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose';
import { selfSigned } from '#test/harness/self-signed.ts';

/** Token service of a registry (`auth: token` of docker-registry). */
export interface TokenServer {
  realm: string;
  service: string;
  issuer: string;
  /** Certificate in PEM, with which the registry checks tokens. */
  certificate: string;
  /** Issues a token for a scope such as `repository:team/app:pull,push`. */
  issue(scope: string): Promise<string>;
  /** Received requests: credentials and scopes. */
  asked: { authorization: string | undefined; scope: string[] }[];
  stop(): Promise<void>;
}

/** Starts a token service. Anonymous callers get tokens for repositories below `public/`, the one user for all. */
export async function startTokenServer(user: { username: string; password: string }): Promise<TokenServer> {
  const { cert, key } = selfSigned();
  const asked: TokenServer['asked'] = [];
  const [service, issuer] = ['test registry', 'test issuer'];
  const basic = `Basic ${Buffer.from(`${user.username}:${user.password}`).toString('base64')}`;
  const sign = (scopes: string[]) => {
    const access = scopes.map((scope) => {
      const [type, ...rest] = scope.split(':');
      return { type, actions: rest.pop()!.split(','), name: rest.join(':') };
    });
    return new SignJWT({ access })
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT', x5c: [cert.replace(/-----.*?-----|\s/g, '')] })
      .setIssuer(issuer)
      .setAudience(service)
      .setSubject(user.username)
      .setIssuedAt()
      .setNotBefore('-1m')
      .setExpirationTime('5m')
      .setJti(String(Math.random()))
      .sign(createPrivateKey(key));
  };
  const server = createServer((request, response) => {
    const scopes = new URL(request.url!, 'http://x').searchParams.getAll('scope').flatMap((text) => text.split(' '));
    const { authorization } = request.headers;
    asked.push({ authorization, scope: scopes });
    if (authorization !== undefined && authorization !== basic) return void response.writeHead(401).end('{}');
    const granted = scopes.filter((scope) => authorization === basic || scope.startsWith('repository:public/'));
    void sign(granted).then((token) => response.end(JSON.stringify({ token, expires_in: 300 })));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    realm: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    service,
    issuer,
    certificate: cert,
    issue: (scope) => sign([scope]),
    asked,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
