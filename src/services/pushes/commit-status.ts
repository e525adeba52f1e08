import { anySignal } from '#kernel/lease-signal.ts';
import { newId } from '#kernel/ids.ts';
import type { Context, Platform } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import { accessOf, ProviderError } from '#resources/git-token/index.ts';
import {
  callRepository,
  findGitToken,
  hostOf,
  isApiOf,
  type ProviderRepository,
} from '#services/capabilities/service/git-webhook/index.ts';
import * as queries from '#services/pushes/commit-status-queries.ts';
import type { Follower } from '#services/pushes/followers.ts';

/** Attempts to reach a provider, with a pause of 30 seconds that doubles. */
const MOST_ATTEMPTS = 8;
const RETRY_SECONDS = 30;
const ASK_MS = 15_000;
/** Longest description that GitHub takes. */
const LONGEST_TEXT = 140;

/** Notes that the commits of services are being deployed, for providers whose token a service has. */
export async function noteCommits(
  { db }: Context,
  deploymentId: string,
  commit: string,
  sources: Pick<Follower, 'row' | 'source'>[],
): Promise<void> {
  const rows = sources.flatMap(({ row, source }) => {
    const host = hostOf(source);
    if (!source.git_token_id || host === undefined) return [];
    const { owner, name, git_token_id } = source;
    const ids = { organization_id: row.organization_id, deployment_id: deploymentId, service_id: row.id, git_token_id };
    return [{ id: newId(), ...ids, host, owner, name, commit }];
  });
  if (rows.length > 0) await queries.insertStatuses(db, rows);
}

const statusWork = (platform: Platform, http: HttpClient): WorkKind<queries.StatusClaim> => ({
  name: queries.COMMIT_STATUS_REPORT.name,
  leaseSeconds: 30,
  slots: 4,
  pollMs: 5_000,
  claim: queries.claimStatuses,
  renew: queries.renewStatuses,
  giveBack: (db, claim, stoppedBy) => queries.giveBackStatus(db, claim, stoppedBy, 30),
  run: (claim, lease) => report(platform, http, claim, lease),
  fields: ({ organization_id, deployment_id }) => ({ organizationId: organization_id, deploymentId: deployment_id }),
});

/** Makes the loop that tells providers what became of commits. */
export const createCommitStatusLoop = (platform: Platform, nodeId: string): WorkLoop<queries.StatusClaim> =>
  new WorkLoop(
    statusWork(platform, createHttpClient({ allowedPrivateAddresses: platform.settings.allowedPrivateAddresses })),
    { platform, nodeId },
  );

/** Tells a provider the state of a commit. A token without the permission ends it; the deployment is not concerned. */
async function report(platform: Platform, http: HttpClient, claim: queries.StatusClaim, lease: Lease): Promise<void> {
  try {
    await send(platform, http, claim, anySignal([lease.signal, AbortSignal.timeout(ASK_MS)]));
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    lease.hold();
    if (error.reason === 'unreachable' && claim.attempts < MOST_ATTEMPTS)
      return queries.writeStatus(platform.db, claim, queries.waitingStatus(RETRY_SECONDS * 2 ** claim.attempts));
    platform.log.warn({ err: error, commit: claim.commit }, 'a provider does not show the status of a commit');
    return queries.endStatus(platform.db, claim, { status: 'ENDED', error: error.message.slice(0, 500) });
  }
  lease.hold();
  const { state } = claim;
  if (state === 'pending')
    await queries.writeStatus(platform.db, claim, { reported: state, attempts: 0, ...queries.waitingStatus(0) });
  else await queries.endStatus(platform.db, claim, { status: 'ENDED', reported: state });
}

async function send(platform: Platform, http: HttpClient, claim: queries.StatusClaim, signal: AbortSignal) {
  const { organization_id: organizationId, owner, name, host } = claim;
  const token = await findGitToken(platform.db, { organizationId }, claim.git_token_id);
  if (!token) throw new ProviderError('refused', 'The git token is gone.');
  const access = await accessOf(platform, token, signal);
  if (!isApiOf(access.api, host)) throw new ProviderError('refused', `The git token is not for ${host}.`);
  const repository = { ...access, owner, name };
  const { path, body } = requestOf(repository, claim, platform.settings.baseUrl);
  const request = { method: 'POST' as const, body: JSON.stringify(body) };
  await callRepository(http, repository, path, true, request, 'write commit statuses');
}

const SENTENCES: Record<queries.CommitState, (service: string, environment: string) => string> = {
  pending: (service, environment) => `${service} is being deployed to ${environment}.`,
  success: (service, environment) => `${service} runs in ${environment}.`,
  failure: (service, environment) => `${service} was not deployed to ${environment}: the log says why.`,
  cancelled: (service, environment) =>
    `${service} was not deployed to ${environment}: it was cancelled, or a newer commit came.`,
};

/** Names of the states at GitHub and Gitea, GitLab, and Bitbucket. */
const STATES: Record<queries.CommitState, [string, string, string]> = {
  pending: ['pending', 'pending', 'INPROGRESS'],
  success: ['success', 'success', 'SUCCESSFUL'],
  failure: ['failure', 'failed', 'FAILED'],
  cancelled: ['error', 'canceled', 'STOPPED'],
};

/** Returns the request that sets the status of a commit. */
export function requestOf(
  repository: Pick<ProviderRepository, 'provider' | 'api' | 'owner' | 'name'>,
  claim: Pick<queries.StatusClaim, 'state' | 'commit' | 'service' | 'service_id' | 'environment' | 'environment_id'>,
  baseUrl: string,
): { path: string; body: Record<string, string | undefined> } {
  const [owner, name] = [encodeURIComponent(repository.owner), encodeURIComponent(repository.name)];
  const { state, commit, service, environment, environment_id: environmentId } = claim;
  const description = SENTENCES[state](service, environment).slice(0, LONGEST_TEXT);
  const label = `quarterdeck/${environment}/${service}`.slice(0, LONGEST_TEXT);
  const url = baseUrl === '' ? '' : `${baseUrl}/environment/${environmentId}/logs`;
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
        // The key has 40 characters at most, and an address is required.
        body: { state: bitbucket, description, key: claim.service_id, name: label, url: url || repository.api },
      };
  }
}
