import { conflict, notFound } from '#kernel/errors.ts';
import { makerOf } from '#platform/access/makers.ts';
import { audit } from '#platform/events/audit.ts';
import type { Call } from '#platform/http/route.ts';
import { placeOf, type EnvironmentTarget } from '#resources/environment/index.ts';
import * as queries from '#services/previews/approval-queries.ts';
import { forkRefOf } from '#services/previews/forks.ts';
import { PREVIEWS } from '#services/previews/queries.ts';
import type { Sender } from '#services/pushes/signature.ts';

type EnvironmentCall = Call<EnvironmentTarget>;

export const toForkPreviewView = (row: queries.ForkPreviewRow) => ({
  id: row.id,
  repository: row.repository,
  number: row.number,
  title: row.title,
  author: row.author,
  head_repository: row.head_repository,
  head_branch: row.head_branch,
  head_commit_id: row.head_commit,
  base_branch: row.base_branch,
  awaits_approval: row.approved_commit !== row.head_commit,
  approved_commit_id: row.approved_commit,
  approved_by: row.approved_by,
  approved_at: row.approved_at?.toISOString() ?? null,
  preview_environment_id: row.environment_id,
  refusal: row.error,
});

/**
 * Approves the head of a pull request from a fork. It is deployed with the rights that the caller has then. Throws 409 if the head is another
 * commit by now, or if its provider does not offer the commit in the repository of the base.
 */
export async function approveForkPreview(call: EnvironmentCall, previewId: string, commit: string) {
  const { target: source, db } = call;
  call.require('service.deploy', source);
  const row = await findPreview(call, previewId);
  if (row.wanted !== 'PRESENT' || row.state !== 'OPEN')
    throw conflict(`Pull request ${row.number} is closed, or ${source.name} makes no preview of it any more.`);
  if (row.head_commit !== commit)
    throw conflict(
      `commit_id: must be the head of pull request ${row.number}, which is ${row.head_commit} now: look at that commit, and approve it.`,
    );
  forkRefOf({ ...row, provider: row.provider as Sender | null }, source);
  await queries.approveCommit(db, source, row.id, commit, makerOf(call.actor));
  await record(call, row, commit);
  return toForkPreviewView(await findPreview(call, previewId));
}

/** Takes an approval back: the preview is removed, and its pull request waits for an approval again. */
export async function withdrawForkApproval(call: EnvironmentCall, previewId: string): Promise<void> {
  const row = await findPreview(call, previewId);
  if (row.approved_commit === null) throw conflict(`No commit of pull request ${row.number} is approved.`);
  await queries.withdrawApproval(call.db, call.target, row.id);
  await record(call, row, null);
}

/** Finds and locks a preview of the environment. Throws 404. */
async function findPreview({ db, target }: EnvironmentCall, id: string): Promise<queries.ForkPreviewRow> {
  const row = await queries.lockForkPreview(db, target, target.id, id);
  if (!row) throw notFound('Preview');
  return row;
}

/** Writes the event of an approval, or of its end, and has the preview looked at. */
async function record(call: EnvironmentCall, row: queries.ForkPreviewRow, commit: string | null): Promise<void> {
  const { repository, number, head_repository } = row;
  const about = { pull_request: number, repository, head_repository };
  await audit(call, {
    organizationId: call.target.organizationId,
    type: commit === null ? 'UPDATE' : 'ACCEPT',
    ...placeOf(call.target),
    before: { ...about, approved_commit_id: row.approved_commit },
    after: { ...about, approved_commit_id: commit },
  });
  call.afterCommit(() => call.notify(PREVIEWS));
}
