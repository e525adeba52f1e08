import { anySignal } from '#kernel/lease-signal.ts';
import { newId } from '#kernel/ids.ts';
import type { Context, Platform } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import { ProviderError } from '#resources/git-token/index.ts';
import { findProviderRepository, serverOf } from '#services/capabilities/service/git-webhook/index.ts';
import * as queries from '#services/pushes/commit-status-queries.ts';
import type { Follower } from '#services/pushes/followers.ts';
import { sendStatus, statusLabel, type CommitState, type CommitStatus } from '#services/pushes/status-request.ts';

/** Attempts to reach a provider, with a pause of 30 seconds that doubles. */
const MOST_ATTEMPTS = 8;
const RETRY_SECONDS = 30;
const ASK_MS = 15_000;

/** Notes that the commits of services are being deployed, for providers whose token a service has. */
export async function noteCommits(
  { db }: Context,
  deploymentId: string,
  commit: string,
  sources: Pick<Follower, 'row' | 'source'>[],
): Promise<void> {
  const rows = sources.flatMap(({ row, source }) => {
    const server = serverOf(source);
    if (!source.git_token_id || server === undefined) return [];
    const { owner, name, git_token_id } = source;
    const ids = { organization_id: row.organization_id, deployment_id: deploymentId, service_id: row.id, git_token_id };
    return [{ id: newId(), ...ids, host: server.hostname, origin: server.origin, owner, name, commit }];
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
  const { organization_id: organizationId, owner, name, origin } = claim;
  const address = { organizationId, gitTokenId: claim.git_token_id, url: origin, owner, name };
  const repository = await findProviderRepository(platform, address, signal);
  if (!repository) throw new ProviderError('refused', `The git token is gone, or is not for ${origin}.`);
  await sendStatus(http, repository, statusOf(claim, platform.settings.baseUrl));
}

const SENTENCES: Record<CommitState, (service: string, environment: string) => string> = {
  pending: (service, environment) => `${service} is being deployed to ${environment}.`,
  success: (service, environment) => `${service} runs in ${environment}.`,
  failure: (service, environment) => `${service} was not deployed to ${environment}: the log says why.`,
  cancelled: (service, environment) =>
    `${service} was not deployed to ${environment}: it was cancelled, or a newer commit came.`,
};

/** Returns the status that a provider is to show. */
function statusOf(
  claim: Pick<queries.StatusClaim, 'state' | 'commit' | 'service' | 'service_id' | 'environment' | 'environment_id'>,
  baseUrl: string,
): CommitStatus {
  const { state, commit, service, service_id: key, environment, environment_id: environmentId } = claim;
  return {
    commit,
    state,
    description: SENTENCES[state](service, environment),
    label: statusLabel([environment, service], key),
    key,
    url: baseUrl === '' ? '' : `${baseUrl}/environment/${environmentId}/logs`,
  };
}
