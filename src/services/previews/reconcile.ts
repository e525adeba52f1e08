import { AppError, conflict } from '#kernel/errors.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { json } from '#platform/database/json.ts';
import type { Database } from '#platform/database/index.ts';
import { ClaimLost, WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { deleteEnvironment } from '#services/capabilities/environment/actions/delete.ts';
import type { Kind } from '#services/kind.ts';
import { createPreview } from '#services/previews/create.ts';
import { expireIn } from '#services/previews/expiry.ts';
import { updatePreview } from '#services/previews/update.ts';
import * as queries from '#services/previews/queries.ts';
import { wantReport } from '#services/previews/report-queries.ts';
import { unaffectedServices } from '#services/previews/unaffected.ts';
import { itemWork } from '#services/pushes/item-work.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';

/** Seconds after which a preview is looked at again: on a locked cluster, and behind the removal of the one before. */
const LOCKED_SECONDS = 60;
const REMOVING_SECONDS = 5;
const MOST_ATTEMPTS = 5;

export interface PreviewParts {
  platform: Platform;
  kinds: Kind[];
  repositories: Pick<RepositoryReader, 'changes' | 'heads'>;
}

const previewWork = (parts: PreviewParts): WorkKind<queries.PreviewClaim> =>
  itemWork({
    table: queries.PREVIEW_TABLE,
    slots: 8,
    channel: queries.PREVIEWS,
    claim: queries.claimPreviews,
    run: (claim, lease) => lookAt(parts, claim, lease),
    mostAttempts: MOST_ATTEMPTS,
    giveUp: (claim, lease) => lookAt(parts, claim, lease, NONE),
    item: 'preview',
  });

/** Makes the loop that makes, updates and removes previews, in any number of processes. */
export const createPreviewLoop = (parts: PreviewParts, nodeId: string): WorkLoop<queries.PreviewClaim> =>
  new WorkLoop(previewWork(parts), { platform: parts.platform, nodeId });

/**
 * Brings a preview to what its pull request wants now, whatever calls have come: one transaction with the end of the look, so that a kill leaves all
 * or nothing.
 */
async function lookAt(
  parts: PreviewParts,
  claim: queries.PreviewClaim,
  lease: Lease,
  known?: ReadonlySet<string>,
): Promise<void> {
  const unaffected = known ?? (await unaffectedServices(parts, claim, lease.signal));
  lease.hold();
  try {
    await inTransaction(systemContext(parts.platform, 'git'), (context) =>
      new PreviewLook(context, claim, { kinds: parts.kinds, unaffected }).run(),
    );
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'internal') throw error;
    lease.hold();
    await refuse(parts, claim, error.message);
  }
}

/** Ends a look with the reason why the preview is not what its pull request wants. */
const refuse = ({ platform }: PreviewParts, claim: queries.PreviewClaim, reason: string) =>
  inTransaction(systemContext(platform, 'git'), ({ db }) =>
    end(db, claim, { outcome: 'REFUSED', error: reason.slice(0, 1000) }),
  );

interface EndColumns {
  outcome: Outcome | 'REFUSED';
  error: string | null;
  environment_id?: string;
  applied_commit?: string | null;
  awaited?: Record<string, string>;
}

/** Ends a look, and has the provider told. */
async function end(db: Database, claim: queries.PreviewClaim, { awaited, ...columns }: EndColumns): Promise<void> {
  await queries.endPreview(db, claim, {
    status: 'ENDED',
    looked_commit: queries.HEAD_OF_REQUEST,
    ...columns,
    ...(awaited ? { awaited: json(awaited) } : {}),
  });
  await wantReport(db, { organizationId: claim.organization_id }, claim.pull_request_id);
}

type Outcome = 'PREVIEWED' | 'AWAITS_APPROVAL' | 'NOT_AFFECTED' | 'REMOVED';

/** Services that no file of a pull request concerns: none where its repository does not answer. */
const NONE: ReadonlySet<string> = new Set();

interface LookParts {
  kinds: Kind[];
  unaffected: ReadonlySet<string>;
}

/** Tells whether the head of a pull request may be deployed: that of a fork takes an approval of exactly this commit. */
const isApproved = ({ is_fork, approved_commit, head_commit }: queries.PreviewRow): boolean =>
  !is_fork || approved_commit === head_commit;

/** Tells whether an environment has the mark that the code of the pull request needs: it is given at the creation only. */
const hasItsMark = ({ is_fork }: queries.PreviewRow, { fork_ref }: EnvironmentTarget): boolean =>
  is_fork === (fork_ref !== null);

class PreviewLook {
  readonly #context: Context;
  readonly #claim: queries.PreviewClaim;
  readonly #parts: LookParts;

  constructor(context: Context, claim: queries.PreviewClaim, parts: LookParts) {
    this.#context = context;
    this.#claim = claim;
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { db } = this.#context;
    // Environments first: whoever deletes one locks it before the preview that names it.
    const source = await this.#lockEnvironment(this.#claim.source_id);
    const environment = await this.#lockEnvironment(this.#claim.environment_id);
    const preview = await queries.lockPreview(db, this.#claim);
    if (!preview) throw new ClaimLost();
    if (preview.wanted === 'ABSENT' || preview.state === 'CLOSED') return this.#remove(environment);
    if (environment && !environment.deleting && !hasItsMark(preview, environment))
      return this.#replace(preview, environment);
    if (!isApproved(preview)) return this.#awaitApproval(preview, environment);
    if (!source || source.deleting) throw conflict('The environment that the preview is of is gone.');
    if (source.cluster_locked_at ?? environment?.cluster_locked_at) return this.#putOff(LOCKED_SECONDS);
    if (environment?.deleting) return this.#putOff(REMOVING_SECONDS);
    if (environment) return this.#update(preview, source, environment);
    if (preview.applied_commit === preview.head_commit) return this.#end('PREVIEWED');
    const made = await createPreview(this.#context, this.#parts, source, preview);
    if (!made) return this.#end('NOT_AFFECTED');
    const { environmentId: environment_id, awaited } = made;
    return this.#end('PREVIEWED', { environment_id, awaited, applied_commit: preview.head_commit });
  }

  async #update(preview: queries.PreviewRow, source: EnvironmentTarget, environment: EnvironmentTarget) {
    const { applied_commit: applied, head_commit: head } = preview;
    const awaited =
      applied === head ? {} : await updatePreview(this.#context, this.#parts, { preview, source, environment });
    await expireIn(this.#context, environment);
    return this.#end('PREVIEWED', { applied_commit: head, awaited: { ...preview.awaited, ...awaited } });
  }

  /** Leaves a preview with the commit that was approved before. One whose approval was withdrawn is removed. */
  async #awaitApproval(preview: queries.PreviewRow, environment: EnvironmentTarget | undefined): Promise<void> {
    const isWithdrawn = preview.approved_commit === null && environment?.fork_ref != null;
    if (environment && !environment.deleting && !isWithdrawn) await expireIn(this.#context, environment);
    if (!environment || !isWithdrawn || environment.deleting) return this.#end('AWAITS_APPROVAL');
    if (environment.cluster_locked_at) return this.#putOff(LOCKED_SECONDS);
    await deleteEnvironment(this.#context, environment, () => undefined, false);
    return this.#end('AWAITS_APPROVAL', { applied_commit: null });
  }

  /**
   * Removes an environment without the mark that its pull request needs now, or with one that it does not need. The environment may have
   * secrets that the head must not see. What may be deployed is made anew behind the removal.
   */
  async #replace(preview: queries.PreviewRow, environment: EnvironmentTarget): Promise<void> {
    if (environment.cluster_locked_at) return this.#putOff(LOCKED_SECONDS);
    const isGone = await deleteEnvironment(this.#context, environment, () => undefined, false);
    if (!isApproved(preview)) return this.#end('AWAITS_APPROVAL', { applied_commit: null });
    return this.#putOff(isGone ? 0 : REMOVING_SECONDS, { applied_commit: null });
  }

  async #remove(environment: EnvironmentTarget | undefined): Promise<void> {
    if (environment?.cluster_locked_at && !environment.deleting) return this.#putOff(LOCKED_SECONDS);
    // What its rule has made is removed whoever may do what now.
    if (environment) await deleteEnvironment(this.#context, environment, () => undefined, false);
    return this.#end('REMOVED', { applied_commit: null });
  }

  async #lockEnvironment(id: string | null): Promise<EnvironmentTarget | undefined> {
    return id === null
      ? undefined
      : environmentTarget.find(this.#context.db, id, [this.#claim.organization_id], { lock: true });
  }

  #putOff(seconds: number, columns: { applied_commit?: null } = {}): Promise<void> {
    return queries.writePreview(this.#context.db, this.#claim, { ...queries.putOff(seconds), ...columns });
  }

  #end(outcome: Outcome, columns: Omit<EndColumns, 'outcome' | 'error'> = {}): Promise<void> {
    return end(this.#context.db, this.#claim, { outcome, error: null, ...columns });
  }
}
