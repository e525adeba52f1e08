import { afterEach, expect } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { KINDS } from '#services/mount.ts';
import { createCallLoop } from '#services/previews/calls.ts';
import { createPreviewLoop } from '#services/previews/reconcile.ts';
import { headersOf, usePushes } from '#services/pushes/pushes.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';

/** Pull request as a provider's call describes it. */
export interface PullRequestOptions {
  number?: number;
  action?: 'opened' | 'synchronize' | 'closed' | 'reopened' | 'labeled' | 'unlabeled' | 'edited';
  head?: string;
  headBranch?: string;
  base?: string;
  baseCommit?: string;
  isOpen?: boolean;
  /** Seconds from now of the change. */
  at?: number;
  /** Repository of the head; null if it is gone. */
  headRepository?: number | null;
  /** Address of the repository of the head; that of a provider where it is left out. */
  headUrl?: string;
  labels?: string[];
}

const REPOSITORY = 1;

const nameOf = (id: number | null) => (id === REPOSITORY ? 'acme/shop' : 'mallory/shop');

const repositoryOf = (id: number | null, url: string) => ({
  id,
  full_name: nameOf(id),
  clone_url: url,
  html_url: url,
  git_url: url,
  ssh_url: url,
});

/** Time of the first change: providers give whole seconds. */
const START = Math.floor(Date.now() / 1000) * 1000;

/** Fills in what a call leaves out. */
const withDefaults = (options: PullRequestOptions) => ({
  number: 7,
  action: 'opened' as const,
  head: '1'.repeat(40),
  headBranch: 'feature',
  base: 'main',
  baseCommit: '0'.repeat(40),
  at: 0,
  headRepository: REPOSITORY,
  labels: [] as string[],
  isOpen: options.action !== 'closed',
  headUrl: `https://git.invalid/${nameOf(options.headRepository ?? REPOSITORY)}.git`,
  ...options,
});

/** Body of a call about a pull request, in the form of the provider. */
export function bodyOfPullRequest(sender: Sender, options: PullRequestOptions): string {
  const { number, action, head, headBranch, base, baseCommit, at, headRepository, headUrl, labels, isOpen } =
    withDefaults(options);
  const changed = new Date(START + at * 1000).toISOString();
  const unique = newId();
  switch (sender) {
    case 'GITHUB':
    case 'GITEA':
      return JSON.stringify({
        action,
        number,
        pull_request: {
          number,
          title: 'A change',
          user: { login: 'mallory' },
          state: isOpen ? 'open' : 'closed',
          updated_at: changed,
          head: {
            ref: headBranch,
            sha: head,
            repo: headRepository === null ? null : repositoryOf(headRepository, headUrl),
          },
          base: { ref: base, sha: baseCommit, repo: { id: REPOSITORY, default_branch: 'main' } },
          labels: labels.map((name) => ({ name })),
        },
        unique,
      });
    case 'GITLAB':
      return JSON.stringify({
        object_kind: 'merge_request',
        project: { default_branch: 'main' },
        labels: labels.map((title) => ({ title })),
        object_attributes: {
          iid: number,
          title: 'A change',
          source: {
            path_with_namespace: nameOf(headRepository),
            git_http_url: headUrl,
            http_url: headUrl,
            url: headUrl,
          },
          action: action === 'reopened' ? 'reopen' : 'update',
          state: isOpen ? 'opened' : 'merged',
          source_branch: headBranch,
          target_branch: base,
          source_project_id: headRepository,
          target_project_id: REPOSITORY,
          last_commit: { id: head },
          updated_at: changed.replace('T', ' ').replace('Z', ' UTC'),
        },
        unique,
      });
    case 'BITBUCKET':
      return JSON.stringify({
        repository: { mainbranch: { name: 'main' } },
        pullrequest: {
          id: number,
          state: isOpen ? 'OPEN' : 'MERGED',
          updated_on: changed,
          source: {
            branch: { name: headBranch },
            commit: { hash: head.slice(0, 12) },
            repository:
              headRepository === null ? null : { uuid: `{${headRepository}}`, links: { html: { href: headUrl } } },
          },
          destination: {
            branch: { name: base },
            commit: { hash: baseCommit.slice(0, 12) },
            repository: { uuid: `{${REPOSITORY}}` },
          },
        },
        unique,
      });
  }
}

/** Headers of a call about a pull request, with the right signature. */
export const pullRequestHeaders = (sender: Sender, body: string, isOpen = true) =>
  headersOf(sender, body, {
    event: {
      GITHUB: 'pull_request',
      GITEA: 'pull_request',
      GITLAB: 'Merge Request Hook',
      BITBUCKET: isOpen ? 'pullrequest:updated' : 'pullrequest:fulfilled',
    }[sender],
  });

/** Provides environments that make previews, calls about pull requests, and the workers that apply them. */
export function usePreviews(app: TestApp) {
  const pushes = usePushes(app);
  const loops = new Set<ReturnType<typeof createCallLoop> | ReturnType<typeof createPreviewLoop>>();
  afterEach(async () => {
    await Promise.all([...loops].map((loop) => loop.stop()));
    loops.clear();
  });

  /** Saves the rule of an environment: what it makes previews of. */
  async function setRule(actor: Actor, environment: string, previews: object = { auto_preview: true }) {
    const { id, ...rule } = ok(await actor.get(`/environment/${environment}/deploymentRule`), 200);
    const { timezone, start_time, stop_time, weekdays } = rule;
    ok(
      await actor.put(`/environment/${environment}/deploymentRule/${id}`, {
        timezone,
        start_time,
        stop_time,
        weekdays,
        ...previews,
      }),
      200,
    );
  }

  /** Makes an environment that makes previews, with a service of the repository. */
  async function sourceOf(admin: Actor, body: object = {}, previews?: object) {
    const environment = await pushes.environmentOf(admin);
    await setRule(admin, environment, previews);
    const web = await pushes.applicationIn(admin, environment, { name: 'web', auto_preview: true, ...body });
    return { environment, web };
  }

  const tell = async (hook: string, options: PullRequestOptions = {}, sender: Sender = 'GITHUB') => {
    const body = bodyOfPullRequest(sender, options);
    return pushes.call(hook, body, pullRequestHeaders(sender, body, options.action !== 'closed'));
  };

  const worker = () => {
    const parts = { platform: app.platform, kinds: KINDS, repositories: pushes.repositories };
    const both = [createCallLoop(parts, newId()), createPreviewLoop(parts, newId())];
    for (const loop of both) {
      loops.add(loop);
      loop.start();
    }
    return { stop: () => Promise.all(both.map((loop) => loop.stop())) };
  };

  /** Has the workers look for work now. */
  const nudge = () => {
    for (const loop of loops) loop.nudge();
  };

  const callsOf = ({ organizationId }: Actor) =>
    app.db
      .selectFrom('pull_request_call')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .orderBy('number')
      .execute();
  const previewsOf = ({ organizationId }: Actor) =>
    app.db
      .selectFrom('preview')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .orderBy('created_at')
      .orderBy('id')
      .execute();

  /** Waits until every call is applied and every preview is what its pull request wants, and returns the previews. */
  const settled = async (admin: Actor) => {
    await expect
      .poll(
        async () => {
          nudge();
          const open = [...(await callsOf(admin)), ...(await previewsOf(admin))];
          return open.filter(({ status }) => status !== 'ENDED').length;
        },
        { timeout: 60_000, interval: 10 },
      )
      .toBe(0);
    return previewsOf(admin);
  };

  /** Names of the environments of an organization that are not being deleted, in alphabetical order. */
  const environmentsOf = async ({ organizationId }: Actor) => {
    const rows = await app.db
      .selectFrom('environment')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .orderBy('name')
      .execute();
    return rows.filter(({ deleting }) => !deleting);
  };

  const servicesOf = async (environment: string) => {
    const rows = await app.db.selectFrom('service').selectAll().where('environment_id', '=', environment).execute();
    return Object.fromEntries(rows.map((row) => [row.name, row]));
  };

  return {
    ...pushes,
    pushWorker: pushes.worker,
    setRule,
    sourceOf,
    tell,
    worker,
    nudge,
    callsOf,
    previewsOf,
    settled,
    environmentsOf,
    servicesOf,
  };
}
