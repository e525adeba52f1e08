import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, expect } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ASK_MS } from '#services/pushes/heads.ts';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { gitWebhookPath, gitWebhookSecretPlace } from '#services/capabilities/service/git-webhook/index.ts';
import { createPushLoop, type PushParts } from '#services/pushes/work.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { RepositoryError, type RepositoryChanges } from '#services/sources/repository.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';

export const SHOP = 'https://git.invalid/acme/shop.git';
const SECRET = 'the-secret';
export const ZERO = '0'.repeat(40);

/** Commit id for a name. */
export const commit = (name: string): string => createHash('sha1').update(name).digest('hex');

interface PushOptions {
  branch?: string;
  before?: string;
  after: string;
  message?: string;
  files?: string[];
  forced?: boolean;
  /** True for a call that comes when the branch has moved on: the repository does not name the commit as its head. */
  isOld?: boolean;
}

/** Body of a push as GitHub and Gitea send it. */
export function bodyOfPush(options: PushOptions) {
  const { branch = 'main', before = ZERO, after, message = 'a change', files = ['index.js'], forced = false } = options;
  const head = { id: after, message, author: { name: 'Ada' }, added: [], removed: [], modified: files };
  return JSON.stringify({
    ref: branch.startsWith('refs/') ? branch : `refs/heads/${branch}`,
    before,
    after,
    forced,
    head_commit: after === ZERO ? null : head,
    commits: after === ZERO ? [] : [head],
    repository: { default_branch: 'main' },
    pusher: { name: 'ada' },
    unique: newId(),
  });
}

/** Headers of a call, with the right signature. */
export function headersOf(
  sender: Sender,
  body: string,
  { secret = SECRET, id = newId(), event }: { secret?: string; id?: string; event?: string } = {},
): Record<string, string> {
  // prettier-ignore
  const hmac = createHmac('sha256', secret).update(body).digest('hex');
  switch (sender) {
    case 'GITHUB':
      return { 'x-github-event': event ?? 'push', 'x-github-delivery': id, 'x-hub-signature-256': `sha256=${hmac}` };
    case 'GITEA':
      return {
        'x-gitea-event': event ?? 'push',
        'x-github-event': 'push',
        'x-gitea-delivery': id,
        'x-gitea-signature': hmac,
      };
    case 'GITLAB':
      return { 'x-gitlab-event': event ?? 'Push Hook', 'idempotency-key': id, 'x-gitlab-token': secret };
    case 'BITBUCKET':
      return { 'x-event-key': event ?? 'repo:push', 'x-request-uuid': id, 'x-hub-signature': `sha256=${hmac}` };
  }
}

/** Provides services that follow a repository, its webhook, and workers that apply pushes. */
export function usePushes(
  app: TestApp,
  { reader, askMs }: { reader?: () => PushParts['repositories']; askMs?: () => number | undefined } = {},
) {
  const loops = new Set<ReturnType<typeof createPushLoop>>();
  afterEach(async () => {
    await Promise.all([...loops].map((loop) => loop.stop()));
    loops.clear();
  });
  const git = {
    /** Head of every branch; where it is empty, the head is that of the last call. */
    head: '',
    heads: new Map<string, string | null>(),
    defaultBranch: 'main',
    changes: { author: 'Grace', message: 'a change', paths: null } as RepositoryChanges,
    asked: [] as string[],
    failure: undefined as Error | undefined,
    /** Failure of the question for the changes of a commit. */
    changesFailure: undefined as { of: string; error: Error } | undefined,
    /** Answers questions for heads once it is resolved. */
    gate: Promise.resolve(),
  };
  const repositoryOf = new Map<string, string>();
  const headOf = (repository: string, branch: string) =>
    git.head || (git.heads.get(`${repository} ${branch === 'HEAD' ? git.defaultBranch : branch}`) ?? null);
  const repositories = {
    head: async ({ branch }: { branch: string }) => {
      git.asked.push(`head ${branch}`);
      if (git.failure) throw git.failure;
      return git.head;
    },
    heads: async ({ url, branches, signal }: { url: string; branches: readonly string[]; signal: AbortSignal }) => {
      git.asked.push(`heads ${branches.toSorted().join(' ')}`);
      await Promise.race([git.gate, once(signal, 'abort').then(() => Promise.reject(new RepositoryError('unreachable', `${url} did not answer in time.`)))]); // prettier-ignore
      if (git.failure) throw git.failure;
      const { host, pathname } = new URL(url);
      const repository = `${host}${pathname.replace(/\.git$/, '')}`;
      return new Map(branches.map((branch) => [branch, headOf(repository, branch)]));
    },
    changes: async ({ from, to }: { from: string | null; to: string }) => {
      git.asked.push(`changes ${from} ${to}`);
      if (git.changesFailure?.of === to) throw git.changesFailure.error;
      if (git.failure) throw git.failure;
      return git.changes;
    },
  };

  async function environmentOf(admin: Actor, name = 'dev') {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    return ok(await admin.post(`/project/${project.id}/environment`, { name }), 201).id as string;
  }

  async function applicationIn(admin: Actor, environment: string, body: object = {}) {
    const wanted = { name: newId(), auto_deploy: true, git_repository: { url: SHOP, branch: 'main' }, ...body };
    return ok(await admin.post(`/environment/${environment}/application`, wanted), 201).id as string;
  }

  async function webhookOf({ organizationId }: Actor, repository = 'git.invalid/acme/shop', secret = SECRET) {
    const id = newId();
    const sealed = await app.platform.vault.seal(app.db, organizationId, gitWebhookSecretPlace(id), secret);
    await app.db
      .insertInto('git_webhook')
      .values({ id, organization_id: organizationId, repository, secret: sealed })
      .execute();
    repositoryOf.set(gitWebhookPath(id), repository);
    return gitWebhookPath(id);
  }

  /** Calls a webhook again, or with a body that is not of the present head. */
  const replay = (hook: string, body: string, headers: Record<string, string>) =>
    app.anonymous('POST', hook, body, headers);

  /** Moves the branches of a repository as a body says, and calls the webhook. */
  const call = (hook: string, body: string, headers: Record<string, string>) => {
    for (const [branch, after] of headsIn(body)) {
      const head = after === ZERO ? null : after;
      git.heads.set(`${repositoryOf.get(hook)} ${branch}`, head);
      if (git.head && head) git.head = head;
    }
    return replay(hook, body, headers);
  };

  /** Sends a push as GitHub does. */
  const push = async (hook: string, options: PushOptions) => {
    const body = bodyOfPush(options);
    return ok(await (options.isOld ? replay : call)(hook, body, headersOf('GITHUB', body)), 202);
  };

  const worker = () => {
    const loop = createPushLoop(
      {
        platform: app.platform,
        kinds: KINDS,
        repositories: reader?.() ?? repositories,
        get askMs() {
          return askMs?.() ?? ASK_MS;
        },
      },
      newId(),
    );
    loops.add(loop);
    loop.start();
    return loop;
  };

  /** Waits until every push is applied, and returns them in order. `hurry`: what was put off is due at once. */
  const applied = async ({ organizationId }: Actor, { hurry = false } = {}) => {
    const find = () =>
      app.db
        .selectFrom('git_push')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .orderBy('number')
        .execute();
    await expect
      .poll(
        async () => {
          if (hurry)
            await sql`update git_push set due_at = now() where asks + failures > 0 and status = 'WAITING'`.execute(
              app.db,
            );
          for (const loop of loops) loop.nudge();
          return (await find()).filter(({ status }) => status !== 'ENDED').length;
        },
        { timeout: 60_000, interval: 10 },
      )
      .toBe(0);
    return find();
  };

  const deployments = (environment: string) =>
    app.db.selectFrom('deployment').selectAll().where('environment_id', '=', environment).orderBy('number').execute();

  /** Commits that each deployment of an environment was asked for, by service. */
  const requested = async (environment: string): Promise<Record<string, string>[]> =>
    (await deployments(environment)).map(({ snapshot }) =>
      Object.fromEntries((snapshot as any).services.map((one: any) => [one.serviceId, one.commitId])),
    );

  return {
    git,
    repositories,
    environmentOf,
    applicationIn,
    webhookOf,
    call,
    replay,
    push,
    worker,
    applied,
    deployments,
    requested,
  };
}

/** Returns the branches and commits that a body names, as far as it makes sense. */
function headsIn(body: string): [branch: string, after: string][] {
  let read: any;
  try {
    read = JSON.parse(body);
  } catch {
    return [];
  }
  const changes = read?.push?.changes as any[] | undefined;
  if (changes) return changes.map((change) => [change.new.name, change.new.target.hash]);
  const branch = /^refs\/heads\/([^]+)$/.exec(String(read?.ref))?.[1];
  return branch && typeof read.after === 'string' ? [[branch, read.after]] : [];
}
