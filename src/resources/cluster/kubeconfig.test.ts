import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { newId } from '#kernel/ids.ts';
import * as kubeconfig from '#resources/cluster/kubeconfig.ts';

const organizationId = newId();
const checkKubeconfig = (text: string) => kubeconfig.checkKubeconfig(organizationId, text);
const withoutCredentials = (text: string) => kubeconfig.withoutCredentials(organizationId, text);

const make = (cluster: object, user: object, more: object = {}) =>
  JSON.stringify({
    'current-context': 'main',
    contexts: [{ name: 'main', context: { cluster: 'k8s', user: 'admin' } }],
    clusters: [{ name: 'k8s', cluster }],
    users: [{ name: 'admin', user }],
    ...more,
  });
const SERVER = { server: 'https://10.0.0.1:6443' };

describe('checking a kubeconfig', () => {
  test('accepts tokens and certificates that are in it', async () => {
    await checkKubeconfig(make(SERVER, { token: 't' }));
    await checkKubeconfig(
      make(
        { ...SERVER, 'certificate-authority-data': 'Q0E=' },
        { 'client-certificate-data': 'a', 'client-key-data': 'b' },
      ),
    );
  });

  test('refuses what is not followed, and says what to give instead', async () => {
    for (const [cluster, user, part] of [
      [{ ...SERVER, 'proxy-url': 'http://proxy' }, { token: 't' }, 'proxy-url'],
      [SERVER, { token: 't', as: 'admin' }, 'as'],
      [SERVER, { username: 'u', password: 'p' }, 'username'],
    ] as const) {
      await expect(checkKubeconfig(make(cluster, user))).rejects.toThrow(
        `kubeconfig: ${part} is not followed here: give`,
      );
      await expect(kubeconfig.readAccess(organizationId, make(cluster, user))).rejects.toThrow(part);
    }
  });

  test('reads the address and the credentials of the current context only', async () => {
    const pem = Buffer.from('-----BEGIN').toString('base64');
    const users = [
      { name: 'admin', user: { token: 't', 'client-certificate-data': pem, 'client-key-data': pem } },
      { name: 'other', user: { token: 'of another' } },
    ];
    const cluster = { ...SERVER, 'certificate-authority-data': pem, 'tls-server-name': 'k8s.example' };
    expect(await kubeconfig.readAccess(organizationId, make(cluster, {}, { users }))).toEqual({
      server: 'https://10.0.0.1:6443',
      serverName: 'k8s.example',
      authorities: '-----BEGIN',
      insecure: false,
      certificate: { certificate: '-----BEGIN', key: '-----BEGIN' },
      token: 't',
    });
  });

  test('refuses what would run a program or read a file of the control plane, in any entry', async () => {
    for (const [cluster, user] of [
      [SERVER, { exec: { command: 'aws' } }],
      [SERVER, { 'auth-provider': { name: 'gcp' } }],
      [SERVER, { tokenFile: '/etc/passwd' }],
      [SERVER, { 'client-certificate': '/a' }],
      [SERVER, { 'client-key': '/b' }],
      [{ ...SERVER, 'certificate-authority': '/c' }, { token: 't' }],
    ] as const)
      await expect(checkKubeconfig(make(cluster, user)), JSON.stringify([cluster, user])).rejects.toThrow('instead');
    const users = [
      { name: 'admin', user: { token: 't' } },
      { name: 'other', user: { exec: {} } },
    ];
    await expect(checkKubeconfig(make(SERVER, {}, { users }))).rejects.toThrow('exec');
  });

  test('sees what a reader of YAML sees: merged, aliased and tagged entries hide nothing', async () => {
    const config = (user: string, more = '') => `
current-context: main
contexts: [{name: main, context: {cluster: k8s, user: admin}}]
clusters: [{name: k8s, cluster: {server: "https://10.0.0.1:6443"}}]
${more}
users:
  - name: admin
    user: ${user}`;
    await checkKubeconfig(config('{token: t}'));
    for (const [user, more] of [
      ['{token: t, <<: {exec: {command: sh}}}', ''],
      ['{<<: [*a], token: t}', 'x: &a {exec: {command: sh}}'],
      ['*a', 'x: &a {exec: {command: sh}}'],
      ['{token: t, "ex\\u0065c": {command: sh}}', ''],
      ['{token: t, !!str exec: {command: sh}}', ''],
    ] as const)
      await expect(checkKubeconfig(config(user, more)), user).rejects.toThrow('exec runs a program');
    for (const text of [config('{token: t}\n---\n{}'), config('{token: t, token: u}'), config('!!js/function x')])
      await expect(checkKubeconfig(text), text).rejects.toThrow(/^kubeconfig: /);
  });

  test('is not brought to a halt by aliases of aliases', async () => {
    const bomb = ['a0: &a0 [x, x]', ...Array.from({ length: 40 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]`)];
    await expect(checkKubeconfig(bomb.join('\n'))).rejects.toThrow(/^kubeconfig: /);
  });

  test('refuses what is no kubeconfig, and never quotes it', async () => {
    for (const text of [
      'token: [s3cret',
      's3cret',
      '[]',
      make(SERVER, { token: 's3cret' }, { 'current-context': 's3cret' }),
      make(SERVER, { token: 's3cret' }, { users: 's3cret' }),
      make({ server: 'file:///s3cret' }, { token: 's3cret' }),
      make({}, { token: 's3cret' }),
      JSON.stringify({ kind: 's3cret' }),
    ]) {
      await expect(checkKubeconfig(text), text).rejects.toThrow(/^kubeconfig: (?!.*s3cret)/);
    }
  });

  test('leaves out credentials, also those in addresses of proxies', async () => {
    const cluster = { ...SERVER, 'proxy-url': 'http://user:s3cret@proxy' };
    const text = await withoutCredentials(make(cluster, { token: 's3cret', password: 's3cret' }));
    expect(text).not.toContain('s3cret');
    expect(parse(text)).toMatchObject({
      'current-context': 'main',
      clusters: [{ name: 'k8s', cluster: SERVER }],
      users: [{ name: 'admin', user: {} }],
    });
  });
});
