import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CertificateReader, issuerFolder } from '#runtimes/proxy/caddy/certificates.ts';
import { certificateLog, storageFolder } from '#runtimes/proxy/caddy/config.ts';

const HOST = 'shop.example.com';
const AUTHORITY = 'https://acme.example.com:14000/dir';
let directory: string;
let lines: string[];
let reader: CertificateReader;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'certificates-'));
  lines = [];
  reader = new CertificateReader(directory, AUTHORITY, (line) => lines.push(line));
});

afterEach(() => rmSync(directory, { recursive: true }));

const say = (text: string) => appendFileSync(certificateLog(directory), text);
const failure = (at: number, error: string) =>
  `${JSON.stringify({ ts: at / 1000, level: 'error', msg: 'could not get certificate', identifier: HOST, error })}\n`;
const read = async (since: number | null) => (await reader.read(new Map([[HOST, since]])))[0]!;

/** Self-signed certificate that ends in a hundred years. */
const PEM = `-----BEGIN CERTIFICATE-----
MIIBjDCCATOgAwIBAgIUczsg/9aJGK40zTlz8ydHhQZfplkwCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQc2hvcC5leGFtcGxlLmNvbTAgFw0yNjExMjMxOTIzMTNaGA8y
MTI2MTAzMDE5MjMxM1owGzEZMBcGA1UEAwwQc2hvcC5leGFtcGxlLmNvbTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABCaq/eqU7bMmUkQuTJmUXRCLuaUX3xcTMtWK
rnsMvJ/g6T6X362rQWZ4fXxhUraSUlK1CBkAEMNfmkLzMObZIcCjUzBRMB0GA1Ud
DgQWBBQ6ptyhzKPYfIIt49c0Zv4BNfJ7NDAfBgNVHSMEGDAWgBQ6ptyhzKPYfIIt
49c0Zv4BNfJ7NDAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIGyC
BksaovhomI2VzcsTpkLixVDMDNk7/WK0uD4DcjntAiB576kPFmF5PhENjAipTq+M
MC/x/PjImE4b2zztC58YUQ==
-----END CERTIFICATE-----
`;

/** Stores a certificate as Caddy does. */
function store(directoryUrl: string): void {
  const folder = join(storageFolder(directory), 'certificates', issuerFolder(directoryUrl), HOST);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${HOST}.crt`), PEM);
}

test('a line of the log that cannot be read is told once, and the others count', async () => {
  say(`{"ts":1,"level":"error","identi\0${failure(2_000, 'no such name')}`);
  say(failure(3_000, 'connection refused'));
  expect(await read(0)).toMatchObject({ state: 'FAILED', lastError: 'connection refused' });
  await read(0);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('cannot be read: {"ts":1');
  say(failure(4_000, 'timeout').trimEnd());
  expect(await read(0)).toMatchObject({ lastError: 'connection refused' });
  say('\n');
  expect(await read(0)).toMatchObject({ lastError: 'timeout' });
  expect(lines).toHaveLength(1);
});

test('a failure counts for a host only from when it asked for a certificate', async () => {
  say(failure(2_000, 'no such name'));
  expect(await read(1_000)).toMatchObject({ state: 'FAILED', lastError: 'no such name' });
  expect(await read(3_000)).toMatchObject({ state: 'PENDING', lastError: null });
  expect(await read(null)).toMatchObject({ state: 'PENDING', lastError: null });
});

test('a certificate counts while its authority is the one of the settings', async () => {
  store('https://other.example.com/directory');
  expect(await read(0)).toMatchObject({ state: 'PENDING', expiresAt: null });
  store(AUTHORITY);
  expect(await read(0)).toMatchObject({ state: 'ISSUED', expiresAt: expect.any(Number) });
});

test.each([
  ['https://acme-v02.api.letsencrypt.org/directory', 'acme-v02.api.letsencrypt.org-directory'],
  ['https://localhost:14000/dir', 'localhost-14000-dir'],
  ['https://CA.example.com/acme/v2/', 'ca.example.com-acme-v2'],
  ['https://ca.example.com', 'ca.example.com'],
])('Caddy keeps the certificates of %s in the folder %s', (directoryUrl, folder) => {
  expect(issuerFolder(directoryUrl)).toBe(folder);
});
