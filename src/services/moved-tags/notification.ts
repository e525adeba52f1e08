import { readShapeOf } from '#kernel/parsing/index.ts';
import type { Shape, Shaped } from '#kernel/parsing/formats.ts';

/** Tag that a registry says was pushed. It is a hint: the registry is asked for the digest. */
export interface PushedTag {
  /** Name of the image, perhaps with the registry's host before it. */
  name: string;
  /** Tag, or null where the registry names the image only. */
  tag: string | null;
}

/** Events of one call that are read. */
const MOST_EVENTS = 100;
const LONGEST_NAME = 512;

const TARGET = { repository: 'text', tag: 'text' } as const satisfies Shape;
const ARTIFACTS = {
  resources: [{ tag: 'text' }, MOST_EVENTS],
  repository: { repo_full_name: 'text' },
} as const satisfies Shape;
const OWNER = { login: 'text', username: 'text' } as const satisfies Shape;
const PACKAGE = {
  name: 'text',
  namespace: 'text',
  owner: OWNER,
  type: 'text',
  package_type: 'text',
  version: 'text',
  package_version: { container_metadata: { tag: { name: 'text' } } },
} as const satisfies Shape;

/** Fields of all forms together: each registry has its own names. */
const SHAPE = {
  // Distribution registry, and GitLab's; an event alone is the form of Azure.
  events: [{ action: 'text', target: TARGET }, MOST_EVENTS],
  action: 'text',
  target: TARGET,
  // Docker Hub.
  push_data: { tag: 'text' },
  repository: { repo_name: 'text' },
  // Quay.
  docker_url: 'text',
  namespace: 'text',
  name: 'text',
  updated_tags: ['text', MOST_EVENTS],
  // Harbor, in its own form and as CloudEvents.
  type: 'text',
  event_data: ARTIFACTS,
  data: ARTIFACTS,
  // GitHub's two events for packages, and Gitea.
  package: PACKAGE,
  registry_package: PACKAGE,
  hook_id: true,
  // Amazon ECR, through EventBridge.
  detail: { result: 'text', 'action-type': 'text', 'repository-name': 'text', 'image-tag': 'text' },
  // Google Artifact Registry, through a push subscription of Pub/Sub.
  message: { data: 'text' },
} as const satisfies Shape;

/** Fields of a message of Google. */
const GOOGLE = { action: 'text', tag: 'text' } as const satisfies Shape;

/** Form of one registry's calls: returns the pushed tags, or undefined for a body of another form. */
type Reader = (body: Shaped<typeof SHAPE>) => NamedTag[] | undefined;

/** Tag as a registry names it. */
interface NamedTag {
  name: string | undefined;
  /** Null where the registry names the image only. */
  tag: string | null | undefined;
}

const READERS: Reader[] = [
  ({ events }) => events?.flatMap(targetOf),
  (body) => (body.target ? targetOf(body) : undefined),
  ({ push_data, repository }) => (push_data ? [{ name: repository?.repo_name, tag: push_data.tag }] : undefined),
  ({ docker_url, namespace, name, updated_tags }) => {
    if (docker_url === undefined) return undefined;
    // Former releases of Quay name the tags as fields, which are not read.
    return (updated_tags ?? [null]).map((tag) => ({ name: `${namespace}/${name}`, tag }));
  },
  ({ type, event_data, data }) => {
    const artifacts = event_data ?? (type?.startsWith('harbor.') ? data : undefined);
    if (!artifacts) return undefined;
    if (type !== 'PUSH_ARTIFACT' && type !== 'harbor.artifact.pushed') return [];
    return (artifacts.resources ?? []).map((one) => ({
      name: artifacts.repository?.repo_full_name,
      tag: one?.tag,
    }));
  },
  (body) => {
    const found = body.package ?? body.registry_package;
    return found ? packageOf(body.action, found) : undefined;
  },
  ({ detail }) => {
    if (detail?.['repository-name'] === undefined) return undefined;
    if (detail['action-type'] !== 'PUSH' || detail.result !== 'SUCCESS') return [];
    return [{ name: detail['repository-name'], tag: detail['image-tag'] }];
  },
  // The first call of GitHub for a new webhook.
  ({ hook_id }) => (hook_id ? [] : undefined),
];

/**
 * Reads the tags that a registry says were pushed; undefined for a body of no known form. Events of another sort, and manifests that were
 * pushed without a tag, name none. Throws ParsingError.
 */
export async function readPushedTags(organizationId: string, body: string): Promise<PushedTag[] | undefined> {
  const given = (await readShapeOf(organizationId, { name: 'notification', text: body }, SHAPE)) ?? {};
  if (given.message?.data !== undefined) return tagsOfGoogle(await readGoogle(organizationId, given.message.data));
  for (const reader of READERS) {
    const found = reader(given);
    if (found) return found.flatMap(checked);
  }
  return undefined;
}

const readGoogle = (organizationId: string, data: string): Promise<Shaped<typeof GOOGLE> | null> =>
  readShapeOf(organizationId, { name: 'message.data', text: Buffer.from(data, 'base64').toString() }, GOOGLE);

/** Reads a message of Google, whose tag is written with its image: `region-docker.pkg.dev/project/repository/image:tag`. */
function tagsOfGoogle(data: Shaped<typeof GOOGLE> | null): PushedTag[] | undefined {
  if (data?.action === undefined) return undefined;
  const [, name, tag] = /^(.+):([^:/]+)$/.exec(data.tag ?? '') ?? [];
  return data.action === 'INSERT' ? checked({ name, tag }) : [];
}

const targetOf = (event: Pick<Shaped<typeof SHAPE>, 'action' | 'target'> | null): NamedTag[] =>
  event?.action === 'push' ? [{ name: event.target?.repository, tag: event.target?.tag }] : [];

/** Reads a package of Gitea, or of GitHub, which names no tag of some images. */
function packageOf(action: string | undefined, found: Shaped<typeof PACKAGE>): NamedTag[] {
  const isGitHub = found.package_type !== undefined;
  if (!['published', 'updated', 'created'].includes(String(action))) return [];
  if (String(isGitHub ? found.package_type : found.type).toLowerCase() !== 'container') return [];
  const owner = found.namespace ?? found.owner?.login ?? found.owner?.username;
  const tag = isGitHub ? found.package_version?.container_metadata?.tag?.name || null : found.version;
  return [{ name: `${owner}/${found.name}`.toLowerCase(), tag }];
}

/** Returns a tag if it is one; none for a digest, which never moves. */
function checked({ name, tag }: NamedTag): PushedTag[] {
  if (!name || name.length > LONGEST_NAME) return [];
  if (tag === null) return [{ name, tag }];
  return tag !== undefined && /^\w[\w.-]{0,127}$/.test(tag) ? [{ name, tag }] : [];
}
