import { isForeignRef } from '#kernel/git-refs.ts';
import { readShapeOf } from '#kernel/parsing/index.ts';
import type { Shape, Shaped } from '#kernel/parsing/formats.ts';
import { storable } from '#kernel/storable.ts';
import type { Sender, WebhookCall } from '#services/pushes/signature.ts';

/** State of a pull request, as a call of its provider describes it. */
export interface PullRequestState {
  number: number;
  isOpen: boolean;
  /** True if the call says that it was closed before. */
  isReopened: boolean;
  /** True if the head is no branch of the repository of the base, or its repository is gone. */
  isFork: boolean;
  isLabelled: boolean;
  /** Provider that tells of it: it says by which ref its repository has the head of a fork. */
  provider: Sender;
  title: string | null;
  /** Name of the author; null if the call does not say it. */
  author: string | null;
  /** Repository of the head, as the provider names it; null if it is gone, or if the call does not say it. */
  headRepository: string | null;
  headBranch: string;
  headCommit: string;
  baseBranch: string;
  /** True if HEAD of the repository names the base. */
  baseIsDefault: boolean;
  /** Head of the base; null if the call does not say it. */
  baseCommit: string | null;
  /** Provider's time of the change. */
  changedAt: Date;
}

/** Comment that asks for a preview. */
export interface PreviewComment {
  number: number;
  /** True if the call says that the author belongs to the repository. */
  isByMember: boolean;
}

/** Label and comment that ask for a preview. */
const LABEL = 'preview';
const COMMAND = /^\/preview\s*$/m;

/** Command in a body that is not parsed yet, where JSON may have a backslash before the stroke. */
const COMMAND_IN_BODY = /\\?\/preview/;

/** Authors of comments that GitHub says may work on the repository. */
const MEMBERS = ['OWNER', 'MEMBER', 'COLLABORATOR'];

const MOST_LABELS = 200;

/** Characters of a title or name that are kept. */
const LONGEST_SHOWN = 255;

const REQUEST_EVENTS: Record<Sender, RegExp> = {
  BITBUCKET: /^pullrequest:(?:created|updated|fulfilled|rejected)$/,
  GITEA: /^pull_request$/,
  GITHUB: /^pull_request$/,
  GITLAB: /^Merge Request Hook$/,
};

/**
 * Tells whether a call is about a pull request, or about a comment with the command. Only GitHub describes the author of a comment: those of
 * other providers ask for nothing.
 */
export function kindOf({ sender, event }: WebhookCall, body: string): 'request' | 'comment' | undefined {
  if (REQUEST_EVENTS[sender].test(event)) return 'request';
  return sender === 'GITHUB' && event === 'issue_comment' && COMMAND_IN_BODY.test(body) ? 'comment' : undefined;
}

const SIDE = {
  ref: 'text',
  sha: 'text',
  repo: { id: true, full_name: 'text', default_branch: 'text' },
} as const satisfies Shape;
const BITBUCKET_SIDE = {
  branch: { name: 'text' },
  commit: { hash: 'text' },
  repository: { uuid: true, full_name: 'text' },
} as const satisfies Shape;

const SHAPES = {
  /** Gitea's, too. */
  GITHUB: {
    action: true,
    pull_request: {
      number: true,
      title: 'text',
      user: { login: 'text' },
      state: true,
      updated_at: true,
      head: SIDE,
      base: SIDE,
      labels: [{ name: 'text' }, MOST_LABELS],
    },
  },
  GITLAB: {
    object_attributes: {
      iid: true,
      title: 'text',
      action: true,
      state: true,
      source_branch: 'text',
      target_branch: 'text',
      source_project_id: true,
      target_project_id: true,
      source: { path_with_namespace: 'text' },
      last_commit: { id: 'text' },
      updated_at: true,
    },
    project: { default_branch: 'text' },
    labels: [{ title: 'text' }, MOST_LABELS],
  },
  BITBUCKET: {
    repository: { mainbranch: { name: 'text' } },
    pullrequest: {
      id: true,
      title: 'text',
      author: { display_name: 'text' },
      state: true,
      updated_on: true,
      source: BITBUCKET_SIDE,
      destination: BITBUCKET_SIDE,
    },
  },
} as const satisfies Partial<Record<Sender, Shape>>;

const COMMENT = {
  action: true,
  issue: { number: true, pull_request: { url: true } },
  comment: { body: 'text', author_association: true },
} as const satisfies Shape;

/** Reads the pull request of a call. Throws ParsingError, or TypeError for a body of another form. */
export async function readPullRequest(organizationId: string, sender: Sender, body: string): Promise<PullRequestState> {
  const file = { name: 'pull request', text: body };
  switch (sender) {
    case 'GITHUB':
    case 'GITEA':
      return ofGitHub(sender, await readShapeOf(organizationId, file, SHAPES.GITHUB));
    case 'GITLAB':
      return ofGitLab(await readShapeOf(organizationId, file, SHAPES.GITLAB));
    case 'BITBUCKET':
      return ofBitbucket(await readShapeOf(organizationId, file, SHAPES.BITBUCKET));
  }
}

/** Reads a comment; undefined if it asks for no preview. Throws ParsingError, or TypeError for a body of another form. */
export async function readComment(organizationId: string, body: string): Promise<PreviewComment | undefined> {
  const file = { name: 'comment', text: body };
  const { action, issue, comment } = (await readShapeOf(organizationId, file, COMMENT)) ?? {};
  if (action !== 'created' || !issue?.pull_request || !COMMAND.test(comment?.body ?? '')) return undefined;
  return { number: numberOf(issue.number), isByMember: MEMBERS.includes(String(comment?.author_association)) };
}

function ofGitHub(provider: Sender, read: Shaped<typeof SHAPES.GITHUB> | null): PullRequestState {
  const { action, pull_request: request = {} } = read ?? {};
  const { head, base } = request;
  return {
    number: numberOf(request.number),
    isOpen: request.state === 'open',
    isReopened: action === 'reopened',
    isFork: isFork(head?.ref, head?.repo?.id, base?.repo?.id),
    isLabelled: hasLabel(request.labels, 'name'),
    provider,
    title: textOf(request.title),
    author: textOf(request.user?.login),
    headRepository: textOf(head?.repo?.full_name),
    headBranch: branchOf(head?.ref),
    headCommit: commitOf(head?.sha),
    baseBranch: branchOf(base?.ref),
    baseIsDefault: base?.ref === base?.repo?.default_branch,
    baseCommit: commitOf(base?.sha),
    changedAt: timeOf(request.updated_at),
  };
}

function ofGitLab(read: Shaped<typeof SHAPES.GITLAB> | null): PullRequestState {
  const { object_attributes: request = {}, project, labels } = read ?? {};
  return {
    number: numberOf(request.iid),
    isOpen: request.state === 'opened',
    isReopened: request.action === 'reopen',
    isFork: isFork(request.source_branch, request.source_project_id, request.target_project_id),
    isLabelled: hasLabel(labels, 'title'),
    provider: 'GITLAB',
    title: textOf(request.title),
    author: null,
    headRepository: textOf(request.source?.path_with_namespace),
    headBranch: branchOf(request.source_branch),
    headCommit: commitOf(request.last_commit?.id),
    baseBranch: branchOf(request.target_branch),
    baseIsDefault: request.target_branch === project?.default_branch,
    baseCommit: null,
    changedAt: timeOf(request.updated_at),
  };
}

/** Bitbucket has no labels, reopens nothing, and shortens commits. */
function ofBitbucket(read: Shaped<typeof SHAPES.BITBUCKET> | null): PullRequestState {
  const { pullrequest: request = {}, repository } = read ?? {};
  const { source, destination } = request;
  return {
    number: numberOf(request.id),
    isOpen: request.state === 'OPEN',
    isReopened: false,
    isFork: isFork(source?.branch?.name, source?.repository?.uuid, destination?.repository?.uuid),
    isLabelled: false,
    provider: 'BITBUCKET',
    title: textOf(request.title),
    author: textOf(request.author?.display_name),
    headRepository: textOf(source?.repository?.full_name),
    headBranch: branchOf(source?.branch?.name),
    headCommit: commitOf(source?.commit?.hash),
    baseBranch: branchOf(destination?.branch?.name),
    baseIsDefault: destination?.branch?.name === repository?.mainbranch?.name,
    baseCommit: commitOf(destination?.commit?.hash),
    changedAt: timeOf(request.updated_on),
  };
}

/**
 * Tells whether the head of a pull request may be of a stranger: it is in another repository, its repository is gone, or it is no branch. Who may
 * read a repository at Gitea or Forgejo makes a pull request by `git push origin HEAD:refs/for/main/x`: the calls name the repository of the base
 * as that of the head, and `refs/pull/7/head` as its ref.
 */
const isFork = (ref: unknown, head: unknown, base: unknown): boolean =>
  head === undefined || head === null || head !== base || isForeignRef(String(ref));

const hasLabel = (labels: unknown, field: string): boolean =>
  Array.isArray(labels) && labels.some((label) => String(label?.[field] ?? '').toLowerCase() === LABEL);

function numberOf(value: unknown): number {
  if (Number.isSafeInteger(value) && Number(value) > 0) return Number(value);
  throw new TypeError('The call names no pull request.');
}

/** Returns a text that people are shown; null if there is none. */
const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? storable(value.slice(0, LONGEST_SHOWN)) : null;

function branchOf(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= 255) return storable(value);
  throw new TypeError('The pull request names no branch.');
}

function commitOf(value: unknown): string {
  if (typeof value === 'string' && /^[0-9a-f]{12,40}$/.test(value)) return value;
  throw new TypeError('The pull request names no commit.');
}

function timeOf(value: unknown): Date {
  const time = new Date(typeof value === 'string' ? value : Number.NaN);
  if (Number.isNaN(time.getTime())) throw new TypeError('The pull request does not say when it was changed.');
  return time;
}
