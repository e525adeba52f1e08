import type { Shape } from '#kernel/parsing/formats.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import { ProviderError } from '#resources/git-token/index.ts';
import { callRepository, type ProviderRepository } from '#services/capabilities/service/git-webhook/index.ts';

/** Comments of a provider on a pull request. Gitea and Forgejo have those of GitHub. */
interface Dialect {
  list(path: string, number: number): string;
  entries: Shape;
  read(body: any): Comment[];
  root(repository: ProviderRepository): string;
  create(number: number): string;
  update(number: number, id: string): string;
  updateMethod: 'PATCH' | 'PUT';
  write(text: string): unknown;
}

const segment = encodeURIComponent;

/** Comments of a pull request among which one's own is looked for. */
const MOST_COMMENTS = 100;
const PLAIN: Shape = [{ id: true, body: 'text' }, MOST_COMMENTS];

const DIALECTS: Record<ProviderRepository['provider'], Dialect> = {
  GITHUB: {
    root: ({ owner, name }) => `/repos/${segment(owner)}/${segment(name)}/issues`,
    list: (root, number) => `${root}/${number}/comments?per_page=${MOST_COMMENTS}`,
    entries: PLAIN,
    read: (body) => body,
    create: (number) => `/${number}/comments`,
    update: (_number, id) => `/comments/${segment(id)}`,
    updateMethod: 'PATCH',
    write: (body) => ({ body }),
  },
  GITLAB: {
    root: ({ owner, name }) => `/projects/${segment(`${owner}/${name}`)}/merge_requests`,
    list: (root, number) => `${root}/${number}/notes?sort=asc&per_page=${MOST_COMMENTS}`,
    entries: PLAIN,
    read: (body) => body,
    create: (number) => `/${number}/notes`,
    update: (number, id) => `/${number}/notes/${segment(id)}`,
    updateMethod: 'PUT',
    write: (body) => ({ body }),
  },
  BITBUCKET: {
    root: ({ owner, name }) => `/repositories/${segment(owner)}/${segment(name)}/pullrequests`,
    list: (root, number) => `${root}/${number}/comments?pagelen=${MOST_COMMENTS}`,
    entries: { values: [{ id: true, deleted: true, content: { raw: 'text' } }, MOST_COMMENTS] },
    // Deleted comments stay in the list.
    read: (body) =>
      body.values
        .filter((one: any) => one.deleted !== true)
        .map((one: any) => ({ id: one.id, body: one.content?.raw })),
    create: (number) => `/${number}/comments`,
    update: (number, id) => `/${number}/comments/${segment(id)}`,
    updateMethod: 'PUT',
    write: (raw) => ({ content: { raw } }),
  },
};

const RIGHT = 'write comments on pull requests';

export interface CommentRequest {
  number: number;
  /** Comment to change; null for the one with the marker, or a new one. */
  id: string | null;
  /** Line of the text that no other comment has: a process may be killed before it stores the id of a comment. */
  marker: string;
  text: string;
}

/** Writes the one comment on a pull request and returns its id; undefined if people have deleted it. Throws ProviderError. */
export async function writeComment(
  http: HttpClient,
  repository: ProviderRepository,
  { number, id: known, marker, text }: CommentRequest,
): Promise<string | undefined> {
  const dialect = DIALECTS[repository.provider];
  const root = dialect.root(repository);
  const id = known ?? (await findComment(http, repository, number, (one) => String(one.body ?? '').includes(marker)));
  const body = JSON.stringify(dialect.write(text));
  if (id === undefined) {
    const request = { method: 'POST' as const, body };
    const path = `${root}${dialect.create(number)}`;
    const made = await callRepository(http, repository, path, { id: true }, request, RIGHT);
    return String(made?.id);
  }
  const request = { method: dialect.updateMethod, body };
  try {
    await callRepository(http, repository, `${root}${dialect.update(number, id)}`, true, request, RIGHT);
    return id;
  } catch (error) {
    if (!(error instanceof ProviderError) || (error.status !== 404 && error.status !== 410)) throw error;
    // A token that lost the repository gets the same answer, also to this.
    if ((await findComment(http, repository, number, (one) => String(one.id) === id)) === undefined) return undefined;
    throw error;
  }
}

interface Comment {
  id: unknown;
  body: unknown;
}

/** Finds a comment among the first hundred of a pull request and returns its id. Throws ProviderError. */
async function findComment(
  http: HttpClient,
  repository: ProviderRepository,
  number: number,
  isIt: (comment: Comment) => boolean,
): Promise<string | undefined> {
  const dialect = DIALECTS[repository.provider];
  const path = dialect.list(dialect.root(repository), number);
  const body = await callRepository(http, repository, path, dialect.entries, {}, RIGHT);
  const list = dialect.read(body ?? []);
  const found = Array.isArray(list) ? list.find((one) => one && isIt(one)) : undefined;
  return found && String(found.id);
}
