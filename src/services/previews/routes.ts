import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { DateTime, ListOf, named, Nullable, PageQuery, Type, Uuid } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { listForkPreviews } from '#services/previews/approval-queries.ts';
import { approveForkPreview, toForkPreviewView, withdrawForkApproval } from '#services/previews/approvals.ts';

const Commit = Type.String({ pattern: '^[0-9a-f]{40}$', description: 'Commit, as 40 hexadecimal digits.' });

const ForkPreview = named(
  'ForkPreview',
  Type.Object({
    id: Uuid,
    repository: Type.String({ description: 'Repository of the base: `host/owner/name`.' }),
    number: Type.Integer({ description: 'Number of the pull request at its provider.' }),
    title: Nullable(Type.String()),
    author: Nullable(Type.String({ description: 'Name at the provider; null if its webhook does not say it.' })),
    head_repository: Nullable(Type.String({ description: 'The fork; null if it is gone.' })),
    head_branch: Type.String(),
    head_commit_id: Type.String(),
    base_branch: Type.String(),
    awaits_approval: Type.Boolean({ description: 'True if the head is not the commit that was approved.' }),
    approved_commit_id: Nullable(Type.String()),
    approved_by: Nullable(Uuid),
    approved_at: Nullable(DateTime),
    preview_environment_id: Nullable(Uuid),
    refusal: Nullable(Type.String({ description: 'Why the approved commit is not deployed.' })),
  }),
);
const ForkPreviewList = ListOf(ForkPreview);
const ForkApprovalRequest = named('ForkApprovalRequest', Type.Object({ commit_id: Commit }));

const ALL = '/environment/{environmentId}/forkPreview' as const;
const APPROVAL = `${ALL}/{previewId}/approval` as const;
const TAG = 'Environment Actions';

/** Approvals of pull requests from forks. */
export const forkPreviewRoutes: Route[] = [
  defineRoute({
    id: 'listForkPreviews',
    method: 'GET',
    path: ALL,
    tag: TAG,
    summary: 'List the open pull requests from forks that an environment would make previews of',
    description: 'Those whose `awaits_approval` is true have a head that nobody has approved.',
    target: environmentTarget,
    action: 'environment.read',
    query: PageQuery,
    answer: { status: 200, body: ForkPreviewList },
    handler: ({ db, target, query }) =>
      fetchPage(db, listForkPreviews(db, target, target.id), query, toForkPreviewView),
  }),
  defineRoute({
    id: 'approveForkPreview',
    method: 'PUT',
    path: APPROVAL,
    tag: TAG,
    summary: 'Approve the head of a pull request from a fork, so that it is deployed in a preview without secrets',
    description:
      'Takes the permissions to edit the environment and to deploy its services, now and when the commit is deployed. 409 if the head is another commit by now; a later push needs another approval.',
    target: environmentTarget,
    action: 'environment.edit',
    body: ForkApprovalRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: ForkPreview },
    errors: [409],
    handler: (call) => approveForkPreview(call, call.params.previewId, call.body.commit_id),
  }),
  defineRoute({
    id: 'withdrawForkApproval',
    method: 'DELETE',
    path: APPROVAL,
    tag: TAG,
    summary: 'Withdraw the approval of a pull request from a fork, and remove its preview',
    description:
      'The environment of the preview is deleted with everything in it. Its pull request waits for another approval.',
    target: environmentTarget,
    action: 'environment.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => withdrawForkApproval(call, call.params.previewId),
  }),
];
