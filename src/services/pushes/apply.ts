import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import {
  isAffected,
  listRestrictionsByServices,
} from '#services/capabilities/service/deployment-restrictions/index.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { lockBranch, setHead } from '#services/pushes/branch-queries.ts';
import { EnvironmentPush, type Chosen, type Concerns, type TargetCommit } from '#services/pushes/environment-push.ts';
import { follows, listFollowers, listOthers, type Follower } from '#services/pushes/followers.ts';
import type { ServiceOutcome } from '#services/pushes/outcome.ts';
import type { BranchMove } from '#services/pushes/heads.ts';
import type { Push } from '#services/pushes/payload.ts';
import { insertPush, type RepositoryOf } from '#services/pushes/queries.ts';
import { lockServices, setNewestCommit } from '#services/pushes/service-queries.ts';

/** Seconds after which a push is applied to environments of a locked cluster again. */
const LOCKED_SECONDS = 60;

export interface ApplyOptions {
  kinds: Kind[];
  /** Environments to apply the push to, where not all. */
  environmentIds: string[] | null;
  /** Seconds by which the push puts off the next poll of its branch. */
  pollInSeconds: number;
}

/** Authors that a deployment names. */
const MOST_AUTHORS = 5;

/** Thrown where a branch was moved since its repository was asked: the answer is old. */
class HeadMoved extends Error {
  constructor(branch: string) {
    super(`The branch ${branch} was moved by another push meanwhile.`);
    this.name = 'HeadMoved';
  }
}

/**
 * Applies moves of branches of a repository in one transaction: records the newest commit of each service that follows a branch, and requests one
 * deployment for each environment. Locks branches, services and environments in this order, each in the order of their names or ids. Returns what
 * became of each service. Throws HeadMoved.
 */
export async function applyMoves(
  context: Context,
  of: RepositoryOf,
  moves: BranchMove[],
  options: ApplyOptions,
): Promise<ServiceOutcome[]> {
  const { db } = context;
  const scope = { organizationId: of.organization_id };
  const list = async () => (await listFollowers(db, scope, options.kinds)).filter((one) => one.repository === of.repository); // prettier-ignore
  const before = await list();
  const deploying: DeployingMove[] = [];
  for (const move of moves.toSorted((a, b) => (a.branch < b.branch ? -1 : 1))) {
    if (!before.some((one) => follows(one, move.branch))) continue;
    const head = await moveBranch(context, of, move, options);
    if (move.pushes.length > 0)
      deploying.push({ ...move, target: options.environmentIds ? lateTargetOf(move, head) : targetOf(move) });
  }
  if (!options.environmentIds) await noteOthers(context, of, moves);
  const concerned = before.filter((one) => deploying.some((move) => isConcerned(one, move, options)));
  if (concerned.length === 0) return [];
  await lockServices(db, scope, [...new Set(concerned.map(({ row }) => row.id))]);
  // Read again: they may have been edited before they were locked.
  const followers = (await list()).filter((one) => concerned.some(({ row }) => row.id === one.row.id));
  const environments = await lockEnvironments(context, of, followers);
  const outcomes: ServiceOutcome[] = [];
  for (const move of deploying) {
    const chosen = mergeSources(followers.filter((one) => isConcerned(one, move, options)), move.target.commit); // prettier-ignore
    outcomes.push(...(await deployMove(context, of, move, chosen, environments)));
  }
  return outcomes;
}

/** Move that brings services a commit. */
interface DeployingMove extends BranchMove {
  target: TargetCommit;
}

/** Records the head of a branch, and locks it until the commit. Returns the head that was recorded before. Throws HeadMoved. */
async function moveBranch({ db }: Context, of: RepositoryOf, move: BranchMove, options: ApplyOptions) {
  const { id, head } = await lockBranch(db, of, move.branch, newId());
  if (options.environmentIds) return head;
  if (head !== move.recorded) throw new HeadMoved(move.branch);
  if (head !== move.head) await setHead(db, of, id, move.head, options.pollInSeconds);
  return head;
}

/** Tells whether a move deploys a service that follows its branch. */
const isConcerned = (one: Follower, { branch, isFirst }: BranchMove, { environmentIds }: ApplyOptions): boolean =>
  follows(one, branch) &&
  (environmentIds?.includes(one.row.environment_id) ?? true) &&
  (!isFirst || (one.row.newest_commit !== null && !one.isValues));

async function lockEnvironments({ db }: Context, of: RepositoryOf, followers: Follower[]) {
  const found = new Map<string, EnvironmentTarget>();
  for (const id of [...new Set(followers.map(({ row }) => row.environment_id))].sort()) {
    const environment = await environmentTarget.find(db, id, [of.organization_id], { lock: true });
    if (environment && !environment.deleting) found.set(id, environment);
  }
  return found;
}

/** Requests the deployments of a move, and puts it off for environments of locked clusters. */
async function deployMove(
  context: Context,
  of: RepositoryOf,
  { branch, pushes, target }: DeployingMove,
  chosen: Chosen[],
  environments: Map<string, EnvironmentTarget>,
): Promise<ServiceOutcome[]> {
  const concerns = await concernsOf(context, of, chosen, pushes);
  const outcomes: ServiceOutcome[] = [];
  const putOff: string[] = [];
  for (const [environmentId, services] of Map.groupBy(chosen, ({ row }) => row.environment_id)) {
    const environment = environments.get(environmentId);
    if (!environment) continue;
    const actor = { userId: null, name: target.authors, origin: 'GIT' as const, userAgent: null };
    const found = await new EnvironmentPush({ ...context, actor }, environment, target).apply(services, concerns);
    outcomes.push(...found);
    if (found.some(({ result }) => result === 'PUT_OFF')) putOff.push(environmentId);
  }
  if (putOff.length > 0)
    await insertPush(context.db, {
      id: newId(),
      organization_id: of.organization_id,
      repository: of.repository,
      delivery_id: newId(),
      event: null,
      branch,
      before_commit: pushes[0]!.before,
      after_commit: target.commit,
      environment_ids: putOff,
      inSeconds: LOCKED_SECONDS,
    });
  return outcomes;
}

function targetOf({ pushes }: BranchMove): TargetCommit {
  const newest = pushes.at(-1)!.after!;
  const wanted = pushes.filter(({ isSkipped }) => !isSkipped);
  const names = new Set((wanted.length > 0 ? wanted : pushes).map(({ author }) => author));
  const authors = [...names].slice(-MOST_AUTHORS).join(', ');
  return { commit: wanted.at(-1)?.after ?? newest, newest, isLate: false, authors };
}

/** Returns what a push that was put off brings: the head as it is now. */
function lateTargetOf({ pushes }: BranchMove, head: string | null): TargetCommit {
  const { after, author } = pushes.at(-1)!;
  const commit = head ?? after!;
  return { commit, newest: commit, isLate: true, authors: author };
}

/** Records the newest commit of services without `auto_deploy`, which are out of date then. */
async function noteOthers({ db }: Context, of: RepositoryOf, moves: BranchMove[]): Promise<void> {
  if (moves.every(({ named }) => named === null)) return;
  const others = await listOthers(db, of);
  for (const { branch, named } of moves) {
    const ids = others.filter((one) => follows(one, branch)).map(({ id }) => id);
    if (named !== null && ids.length > 0) await setNewestCommit(db, { organizationId: of.organization_id }, ids, named);
  }
}

function mergeSources(followers: Follower[], commit: string): Chosen[] {
  return [...Map.groupBy(followers, ({ row }) => row.id).values()].map((sources) => {
    const { row, kind } = sources[0]!;
    const choice = Object.assign(
      {},
      ...sources.map(({ isValues }) => (isValues ? { valuesCommitId: commit } : { commitId: commit })),
    ) as DeployChoice;
    return { row, kind, choice, sources };
  });
}

async function concernsOf({ db }: Context, of: RepositoryOf, chosen: Chosen[], pushes: Push[]): Promise<Concerns> {
  const ids = chosen.map(({ row }) => row.id);
  const all = await listRestrictionsByServices(db, { organizationId: of.organization_id }, ids);
  const byService = Map.groupBy(all, (one) => one.service_id);
  const concerned = (some: Push[]) =>
    new Set(
      ids.filter((id) => {
        const own = (byService.get(id) ?? []).map(({ mode, value }) => ({ mode: mode as 'MATCH' | 'EXCLUDE', value }));
        return some.some(({ paths }) => isAffected(own, paths));
      }),
    );
  return {
    deployed: concerned(pushes.filter(({ isSkipped }) => !isSkipped)),
    skipped: concerned(pushes.filter(({ isSkipped }) => isSkipped)),
  };
}
