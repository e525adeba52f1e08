import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { connectionVersion, openConnection } from '#resources/cluster/index.ts';
import { readSettings, SettingsError } from '#platform/settings/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const account = mkdtempSync(path.join(tmpdir(), 'qd-account-'));
afterAll(() => rmSync(account, { recursive: true }));

const app = useApp({
  QUARTERDECK_OWN_CLUSTER: 'first',
  QUARTERDECK_SERVICE_ACCOUNT_DIR: account,
  KUBERNETES_SERVICE_HOST: 'fd00::1',
  KUBERNETES_SERVICE_PORT: '6443',
});

/** Writes the token as kubelet does when it rotates it. */
function writeToken(token: string, seconds: number): void {
  writeFileSync(path.join(account, 'token'), `${token}\n`);
  writeFileSync(path.join(account, 'ca.crt'), 'authority');
  utimesSync(path.join(account, 'token'), seconds, seconds);
}

const makeCluster = async (actor: Actor, runtime = 'kubernetes'): Promise<string> => {
  const body = { name: newId(), cloud_provider: 'ON_PREMISE', region: 'here', runtime };
  return ok(await actor.post(`/organization/${actor.organizationId}/cluster`, body), 201).id;
};

const reached = async (id: string) => [
  await connectionVersion(app.platform, id),
  await openConnection(app.platform, id),
];

const isReady = async (actor: Actor, id: string): Promise<boolean> =>
  ok(await actor.get(`/organization/${actor.organizationId}/cluster/${id}/isReady`), 200).is_ready;

const NOT_REACHED = [null, null];

describe('the account of the control plane', () => {
  test('reaches clusters without a kubeconfig of the organization that the operator names, and no others', async () => {
    writeToken('first token', 1000);
    const [first, other] = [await app.organization(), await app.organization()];
    const own = await makeCluster(first);
    expect(await reached(own)).toEqual([
      'own 1000000',
      {
        server: 'https://[fd00::1]:6443',
        serverName: null,
        authorities: 'authority',
        insecure: false,
        certificate: null,
        token: 'first token',
        isOperators: true,
      },
    ]);
    expect(await isReady(first, own)).toBe(true);

    const foreign = await makeCluster(other);
    expect(await reached(foreign)).toEqual(NOT_REACHED);
    expect(await isReady(other, foreign)).toBe(false);
    expect(await reached(await makeCluster(first, 'fake'))).toEqual(NOT_REACHED);
    app.platform.settings.ownCluster = [other.organizationId];
    expect(await reached(own)).toEqual(NOT_REACHED);
    expect((await reached(foreign))[0]).toBe('own 1000000');
    app.platform.settings.ownCluster = [];
    expect([await reached(own), await reached(foreign)]).toEqual([NOT_REACHED, NOT_REACHED]);
    app.platform.settings.ownCluster = ['first'];
  });

  test('has another version with each token, so that runtimes take the new one', async () => {
    const { first_organization_id: id } = await app.db
      .selectFrom('installation')
      .select('first_organization_id')
      .executeTakeFirstOrThrow();
    const own = await app.db
      .selectFrom('cluster')
      .select('id')
      .where('organization_id', '=', id)
      .where('runtime', '=', 'kubernetes')
      .executeTakeFirstOrThrow();
    writeToken('second token', 2000);
    expect(await reached(own.id)).toMatchObject(['own 2000000', { token: 'second token' }]);
    rmSync(path.join(account, 'token'));
    await expect(reached(own.id)).rejects.toThrow(/cannot be read in .* \(ENOENT\): let the pod mount the token/);
    app.platform.settings.kubernetesHost = '';
    expect(await reached(own.id)).toEqual(NOT_REACHED);
    app.platform.settings.kubernetesHost = 'fd00::1';
  });

  test('gives way to a kubeconfig', async () => {
    writeToken('third token', 3000);
    const actor = await app.organization();
    app.platform.settings.ownCluster = [actor.organizationId];
    const id = await makeCluster(actor);
    const kubeconfig = {
      'current-context': 'main',
      contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://elsewhere' } }],
      users: [{ name: 'u', user: { token: 'own' } }],
    };
    const url = `/organization/${actor.organizationId}/cluster/${id}/kubeconfig`;
    const headers = { 'content-type': 'application/x-yaml' };
    expect((await actor.call('PUT', url, JSON.stringify(kubeconfig), headers)).status).toBe(204);
    const [version, access] = await reached(id);
    expect(version).not.toContain('own');
    expect(access).toMatchObject({ server: 'https://elsewhere', token: 'own' });
    expect(access).not.toHaveProperty('isOperators');
  });

  test('is for organizations that are named exactly', () => {
    for (const wrong of ['*', 'first,all', 'My organization'])
      expect(() => readSettings({ QUARTERDECK_OWN_CLUSTER: wrong })).toThrow(SettingsError);
  });
});
