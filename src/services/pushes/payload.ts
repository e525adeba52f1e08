import { readFileOf, ParsingError } from '#kernel/parsing/index.ts';
import type { Shape } from '#kernel/parsing/formats.ts';
import { printable } from '#kernel/printable.ts';
import { storable } from '#kernel/storable.ts';
import type { Sender } from '#services/pushes/signature.ts';

/** Change of a branch's head. */
export interface Push {
  branch: string;
  /** True if the sender says that HEAD of the repository names the branch. */
  isDefault: boolean;
  /** Head before; null for a new branch, or where it is unknown. */
  before: string | null;
  /** Head now; null for a deleted branch. */
  after: string | null;
  /** Changed files; null if the provider does not name all of them. */
  paths: string[] | null;
  /** True if the message of the new head asks for no deployment. */
  isSkipped: boolean;
  /** Author of the new head. */
  author: string;
  /** True if nothing has told the files, the message and the author: git is asked for them. */
  isBare: boolean;
}

/** Returns a push of which only the commits are known. */
export const barePush = (branch: string, before: string | null, after: string | null): Push => ({
  branch,
  isDefault: false,
  before,
  after,
  paths: null,
  isSkipped: false,
  author: '',
  isBare: true,
});

/** Lists longer than this count as incomplete: whoever filters by paths asks git instead. */
const MOST_COMMITS = 250;
const MOST_PATHS = 1_000;
/** Characters of all names of files of a push that are kept. */
const LONGEST_PATHS = 1 << 16;
/** Branches of one call that are read. */
const MOST_CHANGES = 50;
const LONGEST_NAME = 100;

const FILES: Shape = ['text', MOST_PATHS + 1];
const COMMIT: Shape = { id: 'text', message: 'text', author: { name: 'text' } };
const WITH_FILES: Shape = { ...COMMIT, added: FILES, removed: FILES, modified: FILES };

const bodyOf = (commit: Shape): Shape => ({
  ref: 'text',
  before: 'text',
  after: 'text',
  forced: true,
  total_commits: true,
  total_commits_count: true,
  head_commit: COMMIT,
  commits: [commit, MOST_COMMITS + 1],
  pusher: { name: 'text', login: 'text' },
  user_name: 'text',
  repository: { default_branch: 'text' },
  project: { default_branch: 'text' },
});

const BITBUCKET: Shape = {
  actor: { display_name: 'text' },
  repository: { mainbranch: { name: 'text' } },
  push: {
    changes: [
      {
        new: { type: 'text', name: 'text', target: { hash: 'text', message: 'text', author: { raw: 'text' } } },
        old: { type: 'text', name: 'text', target: { hash: 'text' } },
      },
      MOST_CHANGES,
    ],
  },
};

/** Reads the pushes to branches of a call; tags are left out. Throws ParsingError, or TypeError for a body of another form. */
export async function readPushes(organizationId: string, sender: Sender, body: string): Promise<Push[]> {
  const read = (shape: Shape): Promise<any> =>
    readFileOf(organizationId, 'json-shape', { name: 'push', text: body }, { shape });
  if (sender === 'BITBUCKET') return pushesOfBitbucket(await read(BITBUCKET));
  // GitLab signs no body: whoever has seen its token could say that no file of a service has changed.
  if (sender === 'GITLAB') return pushOf(await read(bodyOf(COMMIT))).map(withoutPaths);
  try {
    return pushOf(await read(bodyOf(WITH_FILES)));
  } catch (error) {
    if (!(error instanceof ParsingError) || error.kind !== 'limit') throw error;
    return pushOf(await read(bodyOf(COMMIT))).map(withoutPaths);
  }
}

const withoutPaths = (push: Push): Push => ({ ...push, paths: null });

/** Reads the form of GitHub, GitLab and Gitea. */
function pushOf(body: any): Push[] {
  const branch = /^refs\/heads\/([^]+)$/.exec(textOf(body?.ref))?.[1];
  if (branch === undefined) return [];
  const [before, after] = [commitOf(body.before), commitOf(body.after)];
  const commits = listOf(body.commits);
  const head = body.head_commit ?? commits.find((commit) => commit?.id === after) ?? {};
  const total = body.total_commits ?? body.total_commits_count ?? commits.length;
  const isWhole = before !== null && body.forced !== true && commits.length > 0 && total === commits.length;
  return [
    {
      branch,
      isDefault: branch === (body.repository?.default_branch ?? body.project?.default_branch),
      before,
      after,
      paths: isWhole ? pathsOf(commits) : null,
      isSkipped: isSkipped(String(head.message ?? '')),
      author: nameOf(head.author?.name, body.user_name, body.pusher?.name, body.pusher?.login),
      isBare: false,
    },
  ];
}

function pushesOfBitbucket(body: any): Push[] {
  const changes = listOf(body?.push?.changes).filter((change) => (change?.new ?? change?.old)?.type === 'branch');
  return changes.map((change) => {
    const branch = textOf((change.new ?? change.old).name);
    return {
      branch,
      isDefault: branch === body.repository?.mainbranch?.name,
      before: change.old ? commitOf(change.old.target?.hash) : null,
      after: change.new ? commitOf(change.new.target?.hash) : null,
      paths: null,
      isSkipped: isSkipped(String(change.new?.target?.message ?? '')),
      author: nameOf(change.new?.target?.author?.raw?.replace(/\s*<[^>]*>\s*$/, ''), body.actor?.display_name),
      isBare: false,
    };
  });
}

function pathsOf(commits: any[]): string[] | null {
  if (commits.length > MOST_COMMITS) return null;
  const lists = commits.flatMap((commit) => [commit?.added, commit?.removed, commit?.modified]);
  if (lists.some((list) => !Array.isArray(list) || list.length > MOST_PATHS || list.includes(null))) return null;
  const paths = [...new Set<string>(lists.flat())];
  const isLong = paths.reduce((length, path) => length + String(path).length, 0) > LONGEST_PATHS;
  return isLong || paths.length > MOST_PATHS || paths.some((path) => storable(path) !== path) ? null : paths;
}

const listOf = (value: unknown): any[] => (Array.isArray(value) ? value : []);

function textOf(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= 255) return storable(value);
  throw new TypeError('The push names no branch.');
}

/** Returns the id of a commit; null for the id of zeros, by which providers mean none. */
function commitOf(value: unknown): string | null {
  if (typeof value !== 'string' || !/^[0-9a-f]{40}$/.test(value)) throw new TypeError('The push names no commit.');
  return /^0+$/.test(value) ? null : value;
}

/** Returns the first name that there is, fit to be shown. */
export const nameOf = (...names: unknown[]): string =>
  printable(storable(names.map((name) => String(name ?? '').trim()).find((name) => name !== '') ?? 'git'))
    .replaceAll(/[\n\t,]+/g, ' ')
    .slice(0, LONGEST_NAME);

/** Tells whether the author of a commit wants no deployment of it. */
export const isSkipped = (message: string): boolean => /\[(?:skip ci|ci skip)\]/i.test(message);
