import { createHash, createHmac } from 'node:crypto';

export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
}

export interface AwsRequest {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: string;
  region: string;
  /** `ecr`, `secretsmanager`. */
  service: string;
}

/** Headers of a request with AWS's signature of it (Signature Version 4). `at` is the time that it is made. */
export function signAws(request: AwsRequest, keys: AwsKeys, at: Date): Record<string, string> {
  const url = new URL(request.url);
  const time = at.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const headers = { ...request.headers, host: url.host, 'x-amz-date': time };
  const canonical = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const names = canonical.map(([name]) => name).join(';');
  const query = [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
  const lines = canonical.map(([name, value]) => `${name}:${value}\n`).join('');
  const text = [request.method, url.pathname, query, lines, names, sha256(request.body)].join('\n');
  const scope = `${time.slice(0, 8)}/${request.region}/${request.service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(text)].join('\n');
  const key = scope
    .split('/')
    .reduce<Buffer>((secret, part) => hmac(secret, part), Buffer.from(`AWS4${keys.secretAccessKey}`));
  const signature = hmac(key, toSign).toString('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return { ...request.headers, 'x-amz-date': time, authorization };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
