import type { HttpClient } from '#platform/http-client/index.ts';
import { ProviderError } from '#resources/git-token/index.ts';
import { callRepository, type ProviderRepository } from '#services/capabilities/service/git-webhook/index.ts';

/** State of a commit at its provider. */
export type CommitState = 'pending' | 'success' | 'failure' | 'cancelled';

/** Names of the states at GitHub and Gitea, GitLab, and Bitbucket. */
const STATES: Record<CommitState, [string, string, string]> = {
  pending: ['pending', 'pending', 'INPROGRESS'],
  success: ['success', 'success', 'SUCCESSFUL'],
  failure: ['failure', 'failed', 'FAILED'],
  cancelled: ['error', 'canceled', 'STOPPED'],
};

/** Longest name and description of a status that GitHub takes. */
const LONGEST_TEXT = 140;

/**
 * Returns the name of a status. It ends with the end of an id: environments and services of two projects, organizations or installations may have
 * the same names, and the later status of a name takes the place of the earlier one.
 */
export function statusLabel(names: string[], id: string): string {
  const end = ` (${id.slice(-8)})`;
  return `quarterdeck/${names.join('/')}`.slice(0, LONGEST_TEXT - end.length).toWellFormed() + end;
}

export interface CommitStatus {
  commit: string;
  state: CommitState;
  description: string;
  /** Name by which the provider tells statuses of a commit apart. */
  label: string;
  /** The same for Bitbucket: 40 characters at most. */
  key: string;
  /** Address that the status leads to; empty for none. */
  url: string;
}

/** Sets the status of a commit. Throws ProviderError. */
export async function sendStatus(
  http: HttpClient,
  repository: ProviderRepository,
  status: CommitStatus,
): Promise<void> {
  const { path, body } = statusRequest(repository, status);
  const request = { method: 'POST' as const, body: JSON.stringify(body) };
  try {
    await callRepository(http, repository, path, true, request, 'write commit statuses');
  } catch (error) {
    if (!(error instanceof ProviderError) || !isShown(repository, status, error)) throw error;
  }
}

/** Tells whether a provider refuses a status because it has it: GitLab answers 400 for a second `pending` of a name. */
const isShown = ({ provider }: ProviderRepository, { state }: CommitStatus, error: ProviderError): boolean =>
  provider === 'GITLAB' && state === 'pending' && error.status === 400;

/** Returns the request that sets the status of a commit. */
function statusRequest(
  repository: Pick<ProviderRepository, 'provider' | 'api' | 'owner' | 'name'>,
  { commit, state, description: sentence, label, key, url }: CommitStatus,
): { path: string; body: Record<string, string | undefined> } {
  const description = sentence.slice(0, LONGEST_TEXT).toWellFormed();
  const [owner, name] = [encodeURIComponent(repository.owner), encodeURIComponent(repository.name)];
  const target = url === '' ? {} : { target_url: url };
  const [plain, gitlab, bitbucket] = STATES[state];
  switch (repository.provider) {
    case 'GITHUB':
      return {
        path: `/repos/${owner}/${name}/statuses/${commit}`,
        body: { state: plain, description, context: label, ...target },
      };
    case 'GITLAB':
      return {
        path: `/projects/${encodeURIComponent(`${repository.owner}/${repository.name}`)}/statuses/${commit}`,
        body: { state: gitlab, description, name: label, ...target },
      };
    case 'BITBUCKET':
      return {
        path: `/repositories/${owner}/${name}/commit/${commit}/statuses/build`,
        // An address is required.
        body: { state: bitbucket, description, key, name: label, url: url || repository.api },
      };
  }
}
