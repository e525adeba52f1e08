import { createHmac } from 'node:crypto';

/** Notification of a push of `acme/shop:stable`, with the fields that the documentation of its registry names. */
interface Form {
  registry: string;
  /** Address of the registry, as users store it. */
  url: string;
  /** Name of the image, as users write it; `acme/shop` unless it is given. */
  image?: string;
  body: unknown;
  headers?: Record<string, string>;
  /** Returns the header that proves the call; registries without one have the secret in the address. */
  sign?(body: string, secret: string): Record<string, string>;
}

const hmac = (body: string, secret: string) => createHmac('sha256', secret).update(body).digest('hex');
const bearer = (_body: string, secret: string) => ({ authorization: `Bearer ${secret}` });
const plain = (_body: string, secret: string) => ({ authorization: secret });
const digest = `sha256:${'7'.repeat(64)}`;
const gitHub = (event: string) => ({ 'x-github-event': event, 'x-github-delivery': '1' });
const signed = (body: string, secret: string) => ({ 'x-hub-signature-256': `sha256=${hmac(body, secret)}` });

const harborData = {
  resources: [{ digest, tag: 'stable', resource_url: 'registry.acme.net/acme/shop:stable' }],
  repository: { name: 'shop', namespace: 'acme', repo_full_name: 'acme/shop', repo_type: 'private' },
};
const gitHubPackage = {
  id: 1,
  name: 'shop',
  namespace: 'acme',
  ecosystem: 'CONTAINER',
  package_type: 'CONTAINER',
  owner: { login: 'acme', type: 'Organization' },
  package_version: { version: digest, container_metadata: { tag: { name: 'stable', digest } } },
};

/** Forms of all registries that are known, for tests. */
export const FORMS: Form[] = [
  {
    registry: 'the Distribution registry',
    url: 'https://registry.acme.net',
    headers: { 'content-type': 'application/vnd.docker.distribution.events.v1+json' },
    sign: bearer,
    body: {
      events: [
        {
          id: 'a',
          timestamp: '2026-03-01T10:00:00Z',
          action: 'push',
          target: { mediaType: 'application/octet-stream', digest, size: 1, repository: 'acme/shop' },
        },
        {
          id: 'b',
          action: 'push',
          target: {
            mediaType: 'application/vnd.oci.image.manifest.v1+json',
            digest,
            repository: 'acme/shop',
            tag: 'stable',
            url: 'https://registry.acme.net/v2/acme/shop/manifests/stable',
          },
        },
      ],
    },
  },
  {
    registry: 'a registry with a prefix in its address',
    url: 'https://registry.gitlab.acme.net/acme',
    image: 'shop',
    sign: bearer,
    body: { events: [{ action: 'push', target: { repository: 'acme/shop', tag: 'stable', digest } }] },
  },
  {
    registry: 'Docker Hub',
    url: 'https://docker.io',
    body: {
      callback_url: 'https://registry.hub.docker.com/u/acme/shop/hook/1/',
      push_data: { pushed_at: 1_770_000_000, pusher: 'ada', tag: 'stable' },
      repository: { name: 'shop', namespace: 'acme', owner: 'acme', repo_name: 'acme/shop', status: 'Active' },
    },
  },
  {
    registry: 'GitHub (registry_package)',
    url: 'https://ghcr.io',
    headers: gitHub('registry_package'),
    sign: signed,
    body: { action: 'published', registry_package: gitHubPackage, organization: { login: 'acme' } },
  },
  {
    registry: 'GitHub (package)',
    url: 'https://ghcr.io',
    headers: gitHub('package'),
    sign: signed,
    body: { action: 'updated', package: gitHubPackage, repository: { full_name: 'acme/source' } },
  },
  {
    registry: 'Gitea and Forgejo',
    url: 'https://git.acme.net',
    headers: { 'x-gitea-event': 'package', 'x-gitea-event-type': 'package' },
    sign: (body, secret) => ({ 'x-gitea-signature': hmac(body, secret), ...signed(body, secret) }),
    body: {
      action: 'created',
      package: {
        id: 1,
        owner: { login: 'acme', username: 'acme' },
        repository: null,
        creator: { login: 'ada' },
        type: 'container',
        name: 'shop',
        version: 'stable',
      },
      sender: { login: 'ada' },
    },
  },
  {
    registry: 'Harbor',
    url: 'https://registry.acme.net',
    sign: plain,
    body: { type: 'PUSH_ARTIFACT', occur_at: 1_770_000_000, operator: 'admin', event_data: harborData },
  },
  {
    registry: 'Harbor, as CloudEvents',
    url: 'https://registry.acme.net',
    headers: { 'content-type': 'application/cloudevents+json' },
    sign: plain,
    body: { specversion: '1.0', id: '1', type: 'harbor.artifact.pushed', operator: 'admin', data: harborData },
  },
  {
    registry: 'Quay',
    url: 'https://quay.io',
    body: {
      name: 'shop',
      repository: 'acme/shop',
      namespace: 'acme',
      docker_url: 'quay.io/acme/shop',
      homepage: 'https://quay.io/repository/acme/shop',
      updated_tags: ['stable'],
    },
  },
  {
    registry: 'Azure Container Registry',
    url: 'https://acme.azurecr.io',
    image: 'shop',
    sign: bearer,
    body: {
      id: '1',
      timestamp: '2026-03-01T10:00:00Z',
      action: 'push',
      target: { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, repository: 'shop', tag: 'stable' },
      request: { id: '2', host: 'acme.azurecr.io', method: 'PUT' },
    },
  },
  {
    registry: 'Amazon ECR, through EventBridge',
    url: 'https://1.dkr.ecr.eu-west-3.amazonaws.com',
    sign: (_body, secret) => ({ authorization: `Basic ${Buffer.from(`aws:${secret}`).toString('base64')}` }),
    body: {
      version: '0',
      'detail-type': 'ECR Image Action',
      source: 'aws.ecr',
      detail: {
        result: 'SUCCESS',
        'repository-name': 'acme/shop',
        'image-digest': digest,
        'action-type': 'PUSH',
        'image-tag': 'stable',
      },
    },
  },
  {
    registry: 'Google Artifact Registry, through Pub/Sub',
    url: 'https://europe-west1-docker.pkg.dev',
    image: 'acme-project/shop/web',
    body: {
      message: {
        data: Buffer.from(
          JSON.stringify({
            action: 'INSERT',
            digest: `europe-west1-docker.pkg.dev/acme-project/shop/web@${digest}`,
            tag: 'europe-west1-docker.pkg.dev/acme-project/shop/web:stable',
          }),
        ).toString('base64'),
        messageId: '1',
      },
      subscription: 'projects/acme-project/subscriptions/gcr',
    },
  },
];
