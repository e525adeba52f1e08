import { onOneLine } from '#kernel/chat-text.ts';
import type { State } from '#deployments/index.ts';
import type { ReportedPreview } from '#services/previews/report-queries.ts';
import type { CommitState } from '#services/pushes/status-request.ts';

/** State of a preview, as its provider shows it. */
export interface PreviewState {
  state: CommitState;
  /** Sentence for people. Reasons of a refusal stay inside: anybody may read a public repository. */
  sentence: string;
}

/** Address of a service of a preview. */
export interface PreviewLink {
  service: string;
  url: string;
}

/** Outcome of the last look at a preview, and the commits that it is about. */
export interface ReportedOutcome extends Pick<
  ReportedPreview,
  'wanted' | 'status' | 'outcome' | 'applied_commit' | 'looked_commit' | 'approved_commit'
> {
  /** True if the preview was last seen running the head. */
  hasRun: boolean;
}

/** Environment of a preview. */
export interface ReportedEnvironment {
  state: State;
  /** True if its services run the commit that they were last asked to run. */
  isCurrent: boolean;
}

/**
 * Returns the state of a preview at the head `commit` of its pull request; undefined if its environment does not follow the pull request any
 * more, so that nothing is known of that commit. `environment` is undefined if it is gone.
 */
export function stateOf(
  {
    wanted,
    status,
    outcome,
    applied_commit: applied,
    looked_commit: looked,
    approved_commit: approved,
    hasRun,
  }: ReportedOutcome,
  commit: string,
  environment: ReportedEnvironment | undefined,
): PreviewState | undefined {
  if (status === 'ENDED' ? outcome === 'REMOVED' : wanted === 'ABSENT') return removedState(environment?.state, hasRun);
  if (outcome === null || status !== 'ENDED')
    return { state: 'pending', sentence: outcome === null ? 'Is being made.' : 'Is being brought up to date.' };
  if ((outcome === 'PREVIEWED' ? applied : looked) !== commit) return undefined;
  switch (outcome) {
    case 'AWAITS_APPROVAL':
      return {
        state: 'pending',
        sentence: `Waits for approval of commit ${commit.slice(0, 12)}, which is of a fork.${environment && approved ? ` The preview stays at ${approved.slice(0, 12)}.` : ''}`,
      };
    case 'REFUSED':
      return { state: 'failure', sentence: 'Refused: the status of the git webhook (gitWebhookStatus) says why.' };
    case 'NOT_AFFECTED':
      return { state: 'success', sentence: 'Not made: no changed file concerns a service with a preview.' };
    case 'PREVIEWED':
      return environment
        ? environmentState(environment, hasRun)
        : ofRemoved('Removed; the next commit makes it again.', hasRun);
  }
}

function removedState(state: State | undefined, hasRun: boolean): PreviewState {
  if (state === undefined) return ofRemoved('Removed.', hasRun);
  return ofRemoved(state === 'DELETE_ERROR' ? 'Could not be removed: its log says why.' : 'Is being removed.', hasRun);
}

/** A commit that ran stays a success: it may be the head of the base by then. Any other must not pass a required check by the removal of its preview. */
const ofRemoved = (sentence: string, hasRun: boolean): PreviewState =>
  hasRun
    ? { state: 'success', sentence }
    : { state: 'cancelled', sentence: `${sentence} This commit was not seen running.` };

function environmentState({ state, isCurrent }: ReportedEnvironment, hasRun: boolean): PreviewState {
  switch (state) {
    case 'DEPLOYED':
    case 'RESTARTED':
    case 'READY':
      return isCurrent
        ? {
            state: 'success',
            sentence: state === 'READY' ? 'Made; none of its services is deployed by itself.' : 'Runs.',
          }
        : { state: 'failure', sentence: 'Runs another commit: its log says why.' };
    case 'STOPPED':
      return isCurrent
        ? { state: 'success', sentence: 'Is stopped.' }
        : { state: 'cancelled', sentence: 'Was stopped before this commit was deployed.' };
    case 'CANCELED':
    case 'CANCELING':
      return isCurrent
        ? { state: 'success', sentence: 'Has this commit; a later deployment was cancelled.' }
        : { state: 'cancelled', sentence: 'Its deployment was cancelled.' };
    case 'BUILD_ERROR':
    case 'DEPLOYMENT_ERROR':
    case 'RESTART_ERROR':
      return { state: 'failure', sentence: 'Could not be deployed: its log says why.' };
    case 'STOP_ERROR':
    case 'DELETE_ERROR':
      return {
        state: 'failure',
        sentence: `Could not be ${state === 'STOP_ERROR' ? 'stopped' : 'removed'}: its log says why.`,
      };
    case 'DELETED':
    case 'DELETE_QUEUED':
    case 'DELETING':
    case 'WAITING_DELETING':
      return ofRemoved('Is being removed; the next commit makes it again.', hasRun);
    case 'STOPPING':
    case 'STOP_QUEUED':
    case 'WAITING_STOPPING':
      return { state: 'pending', sentence: 'Is being stopped.' };
    case 'BUILDING':
    case 'DEPLOYING':
    case 'DEPLOYMENT_QUEUED':
    case 'EXECUTING':
    case 'QUEUED':
    case 'RECAP':
    case 'RESTARTING':
    case 'RESTART_QUEUED':
    case 'UNAVAILABLE':
    case 'WAITING_RESTARTING':
    case 'WAITING_RUNNING':
      return { state: 'pending', sentence: 'Is being deployed.' };
  }
}

/** Makes a name of the organization plain text within Markdown, without mentions and links. */
const plain = (name: string): string => onOneLine(name).replaceAll(/[\\`*_{}[\]()<>#|!~]/g, String.raw`\$&`);

export interface CommentParts {
  marker: string;
  commit: string;
  previews: { source: string; sentence: string; notes: string[]; links: PreviewLink[] }[];
}

/** Returns the sentences of the comment about a fork: how its head is approved, and what the preview lacks. They name no variable and no service. */
export function forkNotes(
  {
    is_fork,
    outcome,
    source_id: sourceId,
    environment_id: own,
    id,
  }: Pick<ReportedPreview, 'is_fork' | 'outcome' | 'source_id' | 'environment_id' | 'id'>,
  commit: string,
): string[] {
  if (!is_fork) return [];
  const how = `A member who may deploy that environment approves exactly this commit: \`PUT /environment/${sourceId}/forkPreview/${id}/approval\` with \`{"commit_id": "${commit}"}\`.`;
  return [
    ...(sourceId && (outcome === 'AWAITS_APPROVAL' || own === null) ? [how] : []),
    'Runs without secrets, without variables that name one, and without services that act with rights of a cloud: Terraform, charts, agents.',
  ];
}

/** Returns the comment on a pull request, in Markdown. */
export function commentOf({ marker, commit, previews }: CommentParts): string {
  const lines = previews.flatMap(({ source, sentence, notes, links }) => [
    `- **${plain(source)}**: ${sentence}`,
    ...notes.map((note) => `  - ${note}`),
    ...links.map(({ service, url }) => `  - ${plain(service)}: ${url}`),
  ]);
  return ['**Previews of this pull request**', '', ...lines, '', `Commit ${commit}.`, '', marker].join('\n');
}
