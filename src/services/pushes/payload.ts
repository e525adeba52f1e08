import { ParsingError, readShapeOf } from '#kernel/parsing/index.ts';
import type { Shape, Shaped } from '#kernel/parsing/formats.ts';
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

const FILES = ['text', MOST_PATHS + 1] as const satisfies Shape;
const COMMIT = { id: 'text', message: 'text', author: { name: 'text' } } as const satisfies Shape;
const WITH_FILES = { ...COMMIT, added: FILES, removed: FILES, modified: FILES } as const satisfies Shape;

/** Form of GitHub, GitLab and Gitea. */
const WITH_PATHS = {
  ref: 'text',
  before: 'text',
  after: 'text',
  forced: true,
  total_commits: true,
  total_commits_count: true,
  head_commit: COMMIT,
  commits: [WITH_FILES, MOST_COMMITS + 1],
  pusher: { name: 'text', login: 'text' },
  user_name: 'text',
  repository: { default_branch: 'text' },
  project: { default_branch: 'text' },
} as const satisfies Shape;
const WITHOUT_PATHS = { ...WITH_PATHS, commits: [COMMIT, MOST_COMMITS + 1] } as const satisfies Shape;

const BITBUCKET = {
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
} as const satisfies Shape;

/** Reads the pushes to branches of a call; tags are left out. Throws ParsingError, or TypeError for a body of another form. */
export async function readPushes(organizationId: string, sender: Sender, body: string): Promise<Push[]> {
  const file = { name: 'push', text: body };
  const withoutPaths = async () => pushOf(await readShapeOf(organizationId, file, WITHOUT_PATHS)).map(leavePathsOut);
  if (sender === 'BITBUCKET') return pushesOfBitbucket(await readShapeOf(organizationId, file, BITBUCKET));
  // GitLab signs no body: whoever has seen its token could say that no file of a service has changed.
  if (sender === 'GITLAB') return withoutPaths();
  try {
    return pushOf(await readShapeOf(organizationId, file, WITH_PATHS));
  } catch (error) {
    if (!(error instanceof ParsingError) || error.kind !== 'limit') throw error;
    return withoutPaths();
  }
}

const leavePathsOut = (push: Push): Push => ({ ...push, paths: null });

type Commits = (Shaped<typeof WITH_FILES> | null)[];

function pushOf(body: Shaped<typeof WITH_PATHS> | null): Push[] {
  const branch = /^refs\/heads\/([^]+)$/.exec(textOf(body?.ref))?.[1];
  if (!body || branch === undefined) return [];
  const [before, after] = [commitOf(body.before), commitOf(body.after)];
  const { commits = [] } = body;
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

function pushesOfBitbucket(body: Shaped<typeof BITBUCKET> | null): Push[] {
  return (body?.push?.changes ?? []).flatMap((change) => {
    const ref = change?.new ?? change?.old;
    if (!change || ref?.type !== 'branch') return [];
    const branch = textOf(ref.name);
    return {
      branch,
      isDefault: branch === body?.repository?.mainbranch?.name,
      before: change.old ? commitOf(change.old.target?.hash) : null,
      after: change.new ? commitOf(change.new.target?.hash) : null,
      paths: null,
      isSkipped: isSkipped(String(change.new?.target?.message ?? '')),
      author: nameOf(change.new?.target?.author?.raw?.replace(/\s*<[^>]*>\s*$/, ''), body?.actor?.display_name),
      isBare: false,
    };
  });
}

function pathsOf(commits: Commits): string[] | null {
  if (commits.length > MOST_COMMITS) return null;
  const lists = commits.flatMap((commit) => [commit?.added, commit?.removed, commit?.modified]);
  const named = lists.flatMap((list) => (list && list.length <= MOST_PATHS ? list : [null]));
  const paths = [...new Set(named)].filter((path) => path !== null);
  if (named.includes(null)) return null;
  const isLong = paths.reduce((length, path) => length + path.length, 0) > LONGEST_PATHS;
  return isLong || paths.length > MOST_PATHS || paths.some((path) => storable(path) !== path) ? null : paths;
}

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
