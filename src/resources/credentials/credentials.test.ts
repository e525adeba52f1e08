import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const SECRET = 'very-secret-0123456789';
const SAMPLES = {
  aws: {
    body: { type: 'AWS_STATIC', name: 'account', access_key_id: 'AKIA1', secret_access_key: SECRET },
    view: { object_type: 'AWS', access_key_id: 'AKIA1' },
    secrets: { secret_access_key: SECRET },
  },
  scaleway: {
    body: {
      name: 'account',
      scaleway_access_key: 'SCW1',
      scaleway_secret_key: SECRET,
      scaleway_project_id: 'p',
      scaleway_organization_id: 'o',
    },
    view: {
      object_type: 'SCW',
      scaleway_access_key: 'SCW1',
      scaleway_project_id: 'p',
      scaleway_organization_id: 'o',
    },
    secrets: { scaleway_secret_key: SECRET },
  },
  gcp: {
    body: { name: 'account', gcp_credentials: SECRET },
    view: { object_type: 'GCP' },
    secrets: { gcp_credentials: SECRET },
  },
  azure: {
    body: { name: 'account', azure_subscription_id: 's', azure_tenant_id: 't' },
    view: {
      object_type: 'AZURE',
      azure_subscription_id: 's',
      azure_tenant_id: 't',
      azure_application_id: '',
      azure_application_object_id: '',
    },
    secrets: null,
  },
  onPremise: { body: { name: 'account' }, view: { object_type: 'OTHER' }, secrets: null },
} as const;
type Provider = keyof typeof SAMPLES;
const PROVIDERS = Object.keys(SAMPLES) as Provider[];

const urlOf = (admin: Actor, provider: Provider) => `/organization/${admin.organizationId}/${provider}/credentials`;

async function storedSecrets(id: string): Promise<unknown> {
  const row = await app.db.selectFrom('credentials').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  if (!row.secrets) return null;
  return JSON.parse(
    await app.platform.vault.open(app.db, row.organization_id, `credentials/${id}/secrets`, row.secrets),
  );
}

describe.each(PROVIDERS)('credentials of %s', (provider) => {
  const { body, view, secrets } = SAMPLES[provider];

  test('are stored with encrypted secrets, which no answer and no event carries', async () => {
    const admin = await app.organization();
    const created = ok(await admin.post(urlOf(admin, provider), body), 201);
    expect(created).toEqual({ id: expect.any(String), name: 'account', ...view });
    expect(await storedSecrets(created.id)).toEqual(secrets);
    expect(ok(await admin.get(`${urlOf(admin, provider)}/${created.id}`), 200)).toEqual(created);
    expect(ok(await admin.get(urlOf(admin, provider)), 200).results).toEqual([created]);
    const events = await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', created.id).execute();
    expect(events).toMatchObject([{ event_type: 'CREATE', sub_target_type: 'CLOUD_PROVIDER_CREDENTIALS' }]);
    expect(JSON.stringify(events)).not.toContain(SECRET);
  });

  test('are replaced and deleted', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post(urlOf(admin, provider), body), 201);
    const url = `${urlOf(admin, provider)}/${id}`;
    expect(ok(await admin.put(url, { ...body, name: 'renamed' }), 200)).toMatchObject({ id, name: 'renamed' });
    expect((await admin.delete(url)).status).toBe(204);
    expect((await admin.get(url)).status).toBe(404);
  });

  test('are changed by administrators of their organization only', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { id } = ok(await admin.post(urlOf(admin, provider), body), 201);
    const url = `${urlOf(admin, provider)}/${id}`;
    const writer = await admin.withScope('WRITE');
    expect((await writer.post(urlOf(admin, provider), body)).status).toBe(403);
    expect((await writer.put(url, body)).status).toBe(403);
    expect((await writer.delete(url)).status).toBe(403);
    ok(await writer.get(url), 200);
    for (const method of ['get', 'delete'] as const) expect((await stranger[method](url)).status).toBe(404);
    expect((await stranger.put(url, body)).status).toBe(404);
  });

  test('are refused with fields that they do not have', async () => {
    const admin = await app.organization();
    expect((await admin.post(urlOf(admin, provider), { ...body, session_token: 'x' })).status).toBe(400);
  });
});

describe('credentials', () => {
  test.each([
    [{ type: 'AWS_ROLE', name: 'role', role_arn: 'arn:aws:iam::1:role/r' }, 'AWS_ROLE', null],
    [
      { type: 'EKS_ANYWHERE_VSPHERE_ROLE', name: 'v', vsphere_user: 'u', vsphere_password: SECRET, role_arn: 'arn' },
      'EKS_ANYWHERE_VSPHERE',
      { vsphere_password: SECRET },
    ],
    [
      {
        type: 'EKS_ANYWHERE_VSPHERE_STATIC',
        name: 'v',
        vsphere_user: 'u',
        vsphere_password: SECRET,
        access_key_id: 'AKIA1',
        secret_access_key: SECRET,
      },
      'EKS_ANYWHERE_VSPHERE',
      { vsphere_password: SECRET, secret_access_key: SECRET },
    ],
  ])('of AWS take the form %o', async (body, objectType, secrets) => {
    const admin = await app.organization();
    const created = ok(await admin.post(urlOf(admin, 'aws'), body), 201);
    expect(created.object_type).toBe(objectType);
    expect(JSON.stringify(created)).not.toContain(SECRET);
    expect(await storedSecrets(created.id)).toEqual(secrets);
  });

  test('of a federated account of Google Cloud name the project of the service account', async () => {
    const admin = await app.organization();
    const body = {
      name: 'federated',
      credential_type: 'WIF',
      service_account_email: 'deploy@my-project.iam.gserviceaccount.com',
      workload_identity_provider_resource: 'projects/1/locations/global/workloadIdentityPools/p/providers/q',
    };
    expect(ok(await admin.post(urlOf(admin, 'gcp'), body), 201)).toMatchObject({
      object_type: 'GCP_WORKLOAD_IDENTITY_FEDERATION',
      project_id: 'my-project',
      token_lifetime_seconds: 3600,
    });
    const wrong = { ...body, service_account_email: 'deploy@example.com' };
    expect((await admin.post(urlOf(admin, 'gcp'), wrong)).body.errors).toContainEqual(
      expect.objectContaining({ field: 'service_account_email' }),
    );
  });

  test('of one provider are not found under another', async () => {
    const admin = await app.organization();
    const { id } = ok(await admin.post(urlOf(admin, 'onPremise'), { name: 'a' }), 201);
    expect((await admin.get(`${urlOf(admin, 'aws')}/${id}`)).status).toBe(404);
  });

  test('without a secret that their form needs are refused, naming the field', async () => {
    const admin = await app.organization();
    const { secret_access_key: _secret, ...body } = SAMPLES.aws.body;
    expect((await admin.post(urlOf(admin, 'aws'), body)).body.errors).toContainEqual({
      field: 'secret_access_key',
      message: 'is required',
    });
  });

  test('that a cluster names are listed with it, renamed there and not deleted', async () => {
    const admin = await app.organization();
    const url = urlOf(admin, 'onPremise');
    const { id } = ok(await admin.post(url, { name: 'rack' }), 201);
    const cluster = { name: newId(), cloud_provider: 'ON_PREMISE', region: 'here', kubernetes: 'SELF_MANAGED' };
    const made = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, cluster), 201);
    const info = `/organization/${admin.organizationId}/cluster/${made.id}/cloudProviderInfo`;
    ok(await admin.post(info, { cloud_provider: 'ON_PREMISE', credentials: { id }, region: 'here' }), 201);
    ok(await admin.put(`${url}/${id}`, { name: 'rack 2' }), 200);
    expect(ok(await admin.get(info), 200).credentials).toEqual({ id, name: 'rack 2' });
    expect(ok(await admin.get(`/organization/${admin.organizationId}/credentials`), 200).results).toEqual([
      {
        credential: { id, name: 'rack 2', object_type: 'OTHER' },
        clusters: [{ id: made.id, name: made.name, cloud_provider: 'ON_PREMISE' }],
      },
    ]);
    expect(ok(await admin.delete(`${url}/${id}`), 409).message).toContain('rack 2');
    const foreign = await app.organization();
    expect(
      (
        await foreign.post(`/organization/${foreign.organizationId}/cluster`, {
          ...cluster,
          cloud_provider_credentials: { cloud_provider: 'ON_PREMISE', credentials: { id, name: 'x' }, region: 'here' },
        })
      ).status,
    ).toBe(400);
  });
});
