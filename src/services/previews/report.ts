import { hash } from 'node:crypto';
import { ParsingError } from '#kernel/parsing/index.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { inSnapshot, systemContext, type Platform } from '#platform/context.ts';
import { createHttpClient, type HttpClient } from '#platform/http-client/index.ts';
import { WorkLoop, type Lease, type WorkKind } from '#platform/work/index.ts';
import { ProviderError } from '#resources/git-token/index.ts';
import { findProviderRepository, type ProviderRepository } from '#services/capabilities/service/git-webhook/index.ts'; // prettier-ignore
import type { Kind } from '#services/kind.ts';
import { writeComment } from '#services/previews/comments.ts';
import * as queries from '#services/previews/report-queries.ts';
import { readShown, type Shown, type ShownPreview } from '#services/previews/report-state.ts';
import { commentOf } from '#services/previews/report-text.ts';
import { sendStatus, statusLabel } from '#services/pushes/status-request.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Attempts to reach a provider, with a pause of 30 seconds that doubles, or as long as the provider says. */
const MOST_ATTEMPTS = 8;
const RETRY_SECONDS = 30;
const LONGEST_RETRY_SECONDS = 3600;
const BUSY_SECONDS = 5;
const ASK_MS = 30_000;

interface ReportParts {
  platform: Platform;
  kinds: Kind[];
}

const reportWork = (parts: ReportParts, http: HttpClient): WorkKind<queries.ReportClaim> => ({
  name: queries.REPORT_REPORT.name,
  leaseSeconds: 45,
  slots: 8,
  pollMs: 5_000,
  claim: queries.claimReports,
  renew: queries.renewReports,
  giveBack: (db, claim, stoppedBy) => queries.giveBackReport(db, claim, stoppedBy, 45),
  run: (claim, lease) => report(parts, http, claim, lease),
  fields: ({ organization_id, pull_request_id }) => ({ organizationId: organization_id, pullRequest: pull_request_id }),
});

/** Makes the loop that tells providers of previews. */
export const createReportLoop = (parts: ReportParts, nodeId: string): WorkLoop<queries.ReportClaim> =>
  new WorkLoop(
    reportWork(parts, createHttpClient({ allowedPrivateAddresses: parts.platform.settings.allowedPrivateAddresses })),
    { platform: parts.platform, nodeId },
  );

/** Tells the provider what has changed since it was told last. */
async function report({ platform, kinds }: ReportParts, http: HttpClient, claimed: queries.ReportClaim, lease: Lease) {
  const shown = await inSnapshot(systemContext(platform, 'git'), (context) => readShown(context, kinds, claimed));
  const claim = shown ? await noteRuns(platform, claimed, shown) : claimed;
  const end = (columns: Omit<queries.ReportEnd, 'next'> = {}) =>
    queries.endLook(platform.db, claim, { next: shown?.isWatched ? 'paced' : 'none', ...columns });
  if (!shown || shown.previews.length === 0) return end();
  const news = newsOf(shown, claim);
  if (news.statuses.length === 0 && news.comment === undefined) return end();
  const teller = new Teller(http, claim, shown);
  const errors = await teller.tell(platform, news, lease.signal);
  lease.hold();
  const { told } = teller;
  // The organization has many answers waiting to be read: that is no attempt.
  if (teller.isBusy)
    return queries.endLook(platform.db, claim, { ...told, next: BUSY_SECONDS, attempts: claim.attempts - 1 });
  const unreachable = errors.find(({ reason }) => reason === 'unreachable');
  if (unreachable && claim.attempts < MOST_ATTEMPTS) {
    const pause = Math.max(RETRY_SECONDS * 2 ** claim.attempts, unreachable.retryAfter ?? 0);
    const next = Math.min(pause, LONGEST_RETRY_SECONDS);
    return queries.endLook(platform.db, claim, { ...told, next, attempts: claim.attempts });
  }
  for (const error of errors)
    platform.log.warn({ err: error, pullRequest: claim.pull_request_id }, 'a provider does not show previews');
  // It is not told the same again: the next change is another attempt.
  const error = errors[0]?.message.slice(0, 500) ?? null;
  return end({ ...told, ...toldOf(shown, claim, news), isNews: true, error });
}

/**
 * Stores which previews were seen running the head, before the provider is told: what ran stays a success, also where the process ends between the
 * provider's answer and the next write. Returns the claim with them.
 */
async function noteRuns({ db }: Platform, claim: queries.ReportClaim, { commit, previews }: Shown) {
  const { told_statuses: before } = claim;
  const ran = previews.filter(({ id, state }) => state === 'success' && before[id]?.ran !== commit);
  if (ran.length === 0) return claim;
  const seen = ran.map(({ id }) => [id, { digest: before[id]?.digest ?? '', ran: commit }] as const);
  const told_statuses = { ...before, ...Object.fromEntries(seen) };
  await queries.keepStatuses(db, claim, { told_statuses });
  return { ...claim, told_statuses };
}

/** Parts of a report that the provider was not told yet. */
interface News {
  statuses: ShownPreview[];
  comment: string | undefined;
}

const digestOf = (value: unknown): string => hash('sha256', JSON.stringify(value));

const digestOfStatus = (commit: string, { state, sentence, url }: ShownPreview): string =>
  digestOf([commit, state, sentence, url]);

/** Returns the status that a provider is told. Nothing new is known of a commit whose deployment goes on. */
const toldStatus = (
  commit: string,
  preview: ShownPreview,
  { told_statuses: before }: Pick<queries.ReportClaim, 'told_statuses'>,
): queries.ToldStatus => ({
  digest: digestOfStatus(commit, preview),
  ran: preview.state === 'success' ? commit : preview.state === 'pending' ? (before[preview.id]?.ran ?? null) : null,
});

const markerOf = ({ pull_request_id: id }: queries.ReportClaim): string => `[//]: # (quarterdeck-previews ${id})`;

function newsOf({ commit, previews }: Shown, claim: queries.ReportClaim): News {
  const comment = commentOf({ marker: markerOf(claim), commit, previews });
  const isToldComment = claim.comment_is_gone || claim.told_comment === digestOf(comment);
  return {
    statuses: previews.filter((one) => claim.told_statuses[one.id]?.digest !== digestOfStatus(commit, one)),
    comment: isToldComment ? undefined : comment,
  };
}

/** Returns the columns of a report of which everything was told, or refused for good. */
const toldOf = ({ commit, previews }: Shown, claim: queries.ReportClaim, { comment }: News) => ({
  told_statuses: Object.fromEntries(previews.map((one) => [one.id, toldStatus(commit, one, claim)])),
  ...(comment === undefined ? {} : { told_comment: digestOf(comment) }),
});

/** Conversation with the provider of a pull request. Comment and statuses do not depend on each other: a token may be allowed one of them. */
class Teller {
  readonly #http: HttpClient;
  readonly #claim: queries.ReportClaim;
  readonly #shown: Shown;
  /** Columns of what the provider has been told, also if something else failed. */
  readonly told: queries.Told;
  /** True if an answer could not be read, because too many files of the organization wait. */
  isBusy = false;

  constructor(http: HttpClient, claim: queries.ReportClaim, shown: Shown) {
    this.#http = http;
    this.#claim = claim;
    this.#shown = shown;
    const { comment_id, comment_is_gone, told_comment, told_statuses } = claim;
    this.told = { comment_id, comment_is_gone, told_comment, told_statuses: { ...told_statuses } };
  }

  /** Tells the news. Returns the reasons why the provider does not show some of it. */
  async tell(platform: Platform, { statuses, comment }: News, leaseSignal: AbortSignal): Promise<ProviderError[]> {
    const errors: ProviderError[] = [];
    const collect = (error: unknown) => {
      if (error instanceof ProviderError) errors.push(error);
      else if (error instanceof ParsingError && error.kind === 'busy') this.isBusy = true;
      else throw error;
    };
    // Read by each request: one is not begun after the end of the lease.
    const signal = anySignal([leaseSignal, AbortSignal.timeout(ASK_MS)]);
    const repository = await findRepository(platform, this.#claim, this.#shown.sources, signal).catch(collect);
    if (!repository) return errors;
    await this.#sendStatuses(repository, statuses).catch(collect);
    if (comment !== undefined) await this.#writeComment(repository, comment).catch(collect);
    return errors;
  }

  /** Sets the status of each preview at the head: a reader of the pull request finds the address there. */
  async #sendStatuses(repository: ProviderRepository, previews: ShownPreview[]): Promise<void> {
    const { commit } = this.#shown;
    for (const preview of previews) {
      const { id: key, source, source_id, state, sentence: description, url } = preview;
      const label = statusLabel(['preview', source], source_id ?? key);
      await sendStatus(this.#http, repository, { commit, state, description, label, key, url });
      this.told.told_statuses[key] = toldStatus(commit, preview, this.#claim);
    }
  }

  async #writeComment(repository: ProviderRepository, text: string): Promise<void> {
    const { number } = this.#shown;
    const request = { number, id: this.told.comment_id, marker: markerOf(this.#claim), text };
    const id = await writeComment(this.#http, repository, request);
    if (id === undefined) this.told.comment_is_gone = true;
    else this.told.comment_id = id;
    this.told.told_comment = digestOf(text);
  }
}

/** Finds the repository at its provider, with the first token of a service that is for its server. Throws ProviderError. */
async function findRepository(
  platform: Platform,
  { organization_id: organizationId }: queries.ReportClaim,
  sources: GitSource[],
  signal: AbortSignal,
): Promise<ProviderRepository> {
  for (const source of sources) {
    const address = { ...source, organizationId, gitTokenId: source.git_token_id! };
    const repository = await findProviderRepository(platform, address, signal);
    if (repository) return repository;
  }
  throw new ProviderError('refused', 'No service of the repository has a git token of its server.');
}
