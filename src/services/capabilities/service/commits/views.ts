import type { GitSource } from '#services/sources/git.ts';
import type { RepositoryCommit } from '#services/sources/repository.ts';

/** Path of a commit's page at each provider, relative to the page of the repository. */
const COMMIT_PATHS: Record<GitSource['provider'], string> = {
  GITHUB: 'commit',
  GITLAB: '-/commit',
  BITBUCKET: 'commits',
};

/** Returns the web page of the repository; undefined for a local folder. */
function pageOf(source: GitSource): string | undefined {
  const scp = /^[\w.-]+@([\w.-]+):/.exec(source.url);
  if (scp) return `https://${scp[1]}/${source.owner}/${source.name}`;
  if (!URL.canParse(source.url)) return undefined;
  const url = new URL(source.url);
  if (url.protocol === 'ssh:') return `https://${url.hostname}/${source.owner}/${source.name}`;
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  return `${url.origin}/${source.owner}/${source.name}`;
}

/** Returns the view of a commit. */
export function toCommitView(source: GitSource, commit: RepositoryCommit) {
  const page = pageOf(source);
  return {
    created_at: commit.date,
    git_commit_id: commit.id,
    tag: commit.tag,
    message: commit.message,
    author_name: commit.author,
    ...(page ? { commit_page_url: `${page}/${COMMIT_PATHS[source.provider]}/${commit.id}` } : {}),
  };
}

/** Returns the authors of commits (newest first) in the order of their newest commit. Authors are distinguished by e-mail address. */
export function toContributorViews(commits: RepositoryCommit[]) {
  const byEmail = new Map<string, RepositoryCommit[]>();
  for (const commit of commits) {
    const key = commit.email.toLowerCase() || commit.author;
    byEmail.set(key, [...(byEmail.get(key) ?? []), commit]);
  }
  return [...byEmail.values()].map((own) => {
    const newest = own[0]!;
    const words = newest.author.trim().split(/\s+/);
    return {
      created_at: own.at(-1)!.date,
      updated_at: newest.date,
      first_name: words.length > 1 ? words.slice(0, -1).join(' ') : words[0]!,
      last_name: words.length > 1 ? words.at(-1)! : '',
      ...(newest.email ? { email: newest.email } : {}),
    };
  });
}
