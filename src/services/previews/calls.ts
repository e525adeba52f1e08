import { ParsingError } from '#kernel/parsing/index.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import type { Kind } from '#services/kind.ts';
import * as calls from '#services/previews/call-queries.ts';
import {
  readComment,
  readPullRequest,
  type PreviewComment,
  type PullRequestState,
} from '#services/previews/payload.ts';
import * as queries from '#services/previews/queries.ts';
import { itemWork } from '#services/pushes/item-work.ts';
import { listSources } from '#services/previews/sources.ts';

/** Age of a change after which a call about it is a repetition: providers give up long before. */
const OLDEST_MS = 7 * 24 * 3600 * 1000;

const MOST_ATTEMPTS = 5;
/** Seconds until a call is read that had to wait behind other files of its organization. */
const BUSY_SECONDS = 5;

interface CallParts {
  platform: Platform;
  kinds: Kind[];
}

const callWork = (parts: CallParts): WorkKind<calls.CallClaim> =>
  itemWork({
    table: calls.CALL_TABLE,
    slots: 4,
    channel: calls.PULL_REQUEST_CALLS,
    claim: calls.claimCalls,
    run: (claim, lease) => runCall(parts, claim, lease),
    mostAttempts: MOST_ATTEMPTS,
    giveUp: (claim) => calls.endCall(parts.platform.db, claim, 'The call could not be applied: the log says why.'),
    item: 'call',
  });

/** Makes the loop that applies calls about pull requests, in any number of processes. */
export const createCallLoop = (parts: CallParts, nodeId: string): WorkLoop<calls.CallClaim> =>
  new WorkLoop(callWork(parts), { platform: parts.platform, nodeId });

/** Records what a call says, and which previews are wanted: one transaction with the end of the call. */
async function runCall({ platform, kinds }: CallParts, claim: calls.CallClaim, lease: Lease): Promise<void> {
  const found = await readCall(claim);
  lease.hold();
  // The organization has many files waiting to be read: the call is none of those that fail.
  if (found === 'busy') return calls.putOffCall(platform.db, claim, BUSY_SECONDS);
  await inTransaction(systemContext(platform, 'git'), async (context) => {
    const apply = new CallApplication(context, claim, kinds);
    const error = 'error' in found ? found.error : await apply.run(found);
    await calls.endCall(context.db, claim, error ?? null);
    context.afterCommit(() => context.notify(queries.PREVIEWS));
  });
}

type ReadCall = { request: PullRequestState } | { comment: PreviewComment | undefined };

/** Reads the body of a call. Returns the reason if it makes no sense, and `busy` if it cannot be read now. */
async function readCall({
  organization_id,
  sender,
  is_comment,
  body,
}: calls.CallClaim): Promise<ReadCall | 'busy' | { error: string }> {
  try {
    return is_comment
      ? { comment: await readComment(organization_id, body ?? '') }
      : { request: await readPullRequest(organization_id, sender, body ?? '') };
  } catch (error) {
    if (error instanceof ParsingError && error.kind === 'busy') return 'busy';
    if (error instanceof ParsingError || error instanceof TypeError) return { error: error.message };
    throw error;
  }
}

/** Call in the transaction that applies it. Methods return the reason where it changes nothing. */
class CallApplication {
  readonly #context: Context;
  readonly #claim: calls.CallClaim;
  readonly #kinds: Kind[];

  constructor(context: Context, claim: calls.CallClaim, kinds: Kind[]) {
    this.#context = context;
    this.#claim = claim;
    this.#kinds = kinds;
  }

  run(call: ReadCall): Promise<string | undefined> {
    if ('request' in call) return this.#applyRequest(call.request);
    return call.comment ? this.#applyComment(call.comment) : Promise.resolve(undefined);
  }

  async #applyRequest(request: PullRequestState): Promise<string | undefined> {
    const { db, clock } = this.#context;
    if (clock.now().getTime() - request.changedAt.getTime() > OLDEST_MS)
      return 'The call is about a change of long ago.';
    let present = await queries.lockPullRequest(db, this.#claim, request.number);
    const isKnown = present !== undefined;
    if (!present) {
      await queries.insertPullRequest(db, this.#claim, request);
      present = await queries.lockPullRequest(db, this.#claim, request.number);
    }
    const { id, changed_at: knownAt, state } = present!;
    if (isKnown && isLate(request, { knownAt, isClosed: state === 'CLOSED' }))
      return 'A later state of the pull request is known.';
    const scope = { organizationId: this.#claim.organization_id };
    if (isKnown) await queries.updatePullRequest(db, scope, id, request);
    if (!request.isOpen) {
      await queries.unwantPreviews(db, scope, id);
      return undefined;
    }
    const isAsked = request.isLabelled || present!.is_asked;
    const isAskedAnew = isKnown && request.isLabelled && !present!.is_labelled;
    const again = isAskedAnew || request.isReopened;
    const sourceIds = await this.#want(id, request, isAsked, again);
    const isMoved =
      isKnown && (present!.base_branch !== request.baseBranch || (present!.is_labelled && !request.isLabelled));
    if (isMoved) await queries.unwantPreviews(db, scope, id, sourceIds);
    return undefined;
  }

  async #applyComment({ number, isByMember }: PreviewComment): Promise<string | undefined> {
    if (!isByMember) return 'The author of the comment is no owner, member or collaborator of the repository.';
    const present = await queries.lockPullRequest(this.#context.db, this.#claim, number);
    if (!present)
      return `Nothing is known of pull request ${number}: it was opened before the webhook was registered. Push to it, or give it the label preview.`;
    if (present.state === 'CLOSED') return `Pull request ${number} is closed.`;
    await queries.setAsked(this.#context.db, { organizationId: present.organization_id }, present.id);
    const request = { baseBranch: present.base_branch, baseIsDefault: present.base_is_default };
    const sourceIds = await this.#want(present.id, request, true, true);
    return sourceIds.length > 0 ? undefined : 'No environment makes previews of pull requests to this branch.';
  }

  /** Wants a preview in each environment that shows pull requests to the base. Returns those environments. */
  async #want(
    pullRequestId: string,
    { baseBranch, baseIsDefault }: Pick<PullRequestState, 'baseBranch' | 'baseIsDefault'>,
    isAsked: boolean,
    again: boolean,
  ): Promise<string[]> {
    const { organization_id: organizationId, repository } = this.#claim;
    const { db } = this.#context;
    const branch = { repository, branch: baseBranch, isDefault: baseIsDefault };
    const sourceIds = await listSources(db, { organizationId }, this.#kinds, branch, isAsked);
    if (sourceIds.length > 0) await queries.wantPreviews(db, { organizationId, pullRequestId, sourceIds, again });
    return sourceIds;
  }
}

/**
 * Tells whether a call is about an earlier state than the known one. Providers give whole seconds: within one, the end of a pull request comes
 * last unless the call says that it was opened again.
 */
function isLate(
  { changedAt, isOpen, isReopened }: PullRequestState,
  { knownAt, isClosed }: { knownAt: Date; isClosed: boolean },
): boolean {
  if (changedAt.getTime() !== knownAt.getTime()) return changedAt < knownAt;
  return isClosed && isOpen && !isReopened;
}
