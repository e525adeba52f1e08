import { AppError } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { findMakerPrincipal } from '#platform/access/makers.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { lockWaitingPush } from '#deployments/index.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment, submit } from '#services/capabilities/service/actions/request.ts';
import {
  isAffected,
  listRestrictionsByServices,
} from '#services/capabilities/service/deployment-restrictions/index.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { noteCommits } from '#services/pushes/commit-status.ts';
import { follows, listFollowers, listOthers, type Follower } from '#services/pushes/followers.ts';
import type { ServiceOutcome } from '#services/pushes/outcome.ts';
import { isSkipped, type Push } from '#services/pushes/payload.ts';
import * as queries from '#services/pushes/queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Seconds after which a push is applied to environments of a locked cluster again. */
const LOCKED_SECONDS = 60;

export interface ApplyOptions {
  kinds: Kind[];
  /** Environments to apply the push to, where not all. */
  environmentIds: string[] | null;
  /** True for the first commit that is known of a branch: services follow it that were deployed from another one. */
  isFirst: boolean;
  /** Seconds by which the push puts off the next poll of its branch. */
  pollInSeconds: number;
}

/** Authors that a deployment names. */
const MOST_AUTHORS = 5;

/** Service that follows a branch, with the commits that it gets. */
interface Chosen {
  row: ServiceRow;
  kind: Kind;
  choice: DeployChoice;
  sources: Follower[];
}

/**
 * Applies pushes to a repository, in their order and in one transaction: records the newest commit of each service that follows a branch, and
 * requests one deployment for each environment. Returns what became of each service.
 */
export async function applyPushes(
  context: Context,
  of: queries.RepositoryOf,
  pushes: Push[],
  options: ApplyOptions,
): Promise<ServiceOutcome[]> {
  const outcomes: ServiceOutcome[] = [];
  for (const ofBranch of Map.groupBy(pushes, ({ branch }) => branch).values())
    outcomes.push(...(await applyToBranch(context, of, ofBranch, options)));
  return outcomes;
}

async function applyToBranch(
  context: Context,
  of: queries.RepositoryOf,
  pushes: Push[],
  options: ApplyOptions,
): Promise<ServiceOutcome[]> {
  const last = pushes.at(-1)!;
  if (last.after !== null) await noteOthers(context, of, last, last.after);
  if (!(await isFollowed(context, of, last, options))) return [];
  const moves: Move[] = [];
  for (const [at, push] of pushes.entries()) {
    const move = await moveHead(context, of, push, pushes.slice(0, at), options);
    if (move) moves.push(move);
  }
  if (moves.length === 0) return [];
  const target = targetOf(moves);
  const chosen = await listChosen(context, of, last, target.commit, options);
  const concern = await concernsOf(context, of, chosen, moves);
  const outcomes: ServiceOutcome[] = [];
  const putOff: string[] = [];
  for (const [environmentId, services] of Map.groupBy(chosen, ({ row }) => row.environment_id)) {
    const scope = [of.organization_id];
    const environment = await environmentTarget.find(context.db, environmentId, scope, { lock: true });
    if (!environment || environment.deleting) continue;
    const actor = { userId: null, name: target.authors, origin: 'GIT' as const, userAgent: null };
    const found = await new EnvironmentPush({ ...context, actor }, environment, target).apply(services, concern);
    outcomes.push(...found);
    if (found.some(({ result }) => result === 'PUT_OFF')) putOff.push(environmentId);
  }
  if (putOff.length > 0)
    await queries.insertPush(context.db, {
      id: newId(),
      organization_id: of.organization_id,
      repository: of.repository,
      delivery_id: newId(),
      event: null,
      branch: last.branch,
      before_commit: pushes[0]!.before,
      after_commit: target.commit,
      environment_ids: putOff,
      inSeconds: LOCKED_SECONDS,
    });
  return outcomes;
}

/** Push that moved the head of its branch, or came late, and the head after it. */
interface Move {
  push: Push;
  commit: string;
  /** True if a push that follows this one was applied before it. */
  isLate: boolean;
  /** True if its message asks for no deployment. */
  isSkipped: boolean;
}

/** Commit that services get. */
interface TargetCommit {
  commit: string;
  /** Head of the branch: a later commit where its message asks for no deployment. */
  newest: string;
  isLate: boolean;
  /** Names of the authors of the new heads. */
  authors: string;
}

function targetOf(moves: Move[]): TargetCommit {
  const newest = moves.at(-1)!.commit;
  const wanted = moves.filter(({ isSkipped }) => !isSkipped);
  const names = new Set((wanted.length > 0 ? wanted : moves).map(({ push }) => push.author));
  return {
    commit: wanted.at(-1)?.commit ?? newest,
    newest,
    isLate: moves.some(({ isLate }) => isLate),
    authors: [...names].slice(-MOST_AUTHORS).join(', '),
  };
}

/** Moves the recorded head of a branch. Returns undefined for a deleted branch, and where nothing has changed. */
async function moveHead(
  { db }: Context,
  of: queries.RepositoryOf,
  push: Push,
  earlier: Push[],
  { environmentIds, pollInSeconds }: ApplyOptions,
): Promise<Move | undefined> {
  const { branch, before, after } = push;
  const { id, head } = await queries.lockBranch(db, of, branch, newId());
  const move = { push, isSkipped: isSkipped(push.message) };
  if (after === null) {
    await queries.setHead(db, of, id, null, pollInSeconds);
    return undefined;
  }
  if (environmentIds) return { ...move, commit: head ?? after, isLate: true };
  if (head === after) return undefined;
  if (head !== null && head !== before) {
    const isLate = earlier.some((one) => one.before === after) || (await queries.isSucceeded(db, of, branch, after));
    if (isLate) return { ...move, commit: head, isLate };
  }
  await queries.setHead(db, of, id, after, pollInSeconds);
  return { ...move, commit: after, isLate: false };
}

/** Records the newest commit of services without `auto_deploy`, which are out of date then. */
async function noteOthers({ db }: Context, of: queries.RepositoryOf, push: Push, commit: string): Promise<void> {
  const scope = { organizationId: of.organization_id };
  const ids = await listOthers(db, scope, of.repository, push);
  if (ids.length > 0) await queries.setNewestCommit(db, scope, ids, commit);
}

async function isFollowed({ db }: Context, of: queries.RepositoryOf, push: Push, { kinds }: ApplyOptions) {
  const followers = await listFollowers(db, { organizationId: of.organization_id }, kinds);
  return followers.some((one) => one.repository === of.repository && follows(one, push));
}

/** Lists the services that follow the branch, locked until the commit, by environment. */
async function listChosen(
  { db }: Context,
  of: queries.RepositoryOf,
  push: Push,
  commit: string,
  { kinds, environmentIds, isFirst }: ApplyOptions,
): Promise<Chosen[]> {
  const scope = { organizationId: of.organization_id };
  const list = async () =>
    (await listFollowers(db, scope, kinds)).filter(
      (one) =>
        one.repository === of.repository &&
        follows(one, push) &&
        (environmentIds?.includes(one.row.environment_id) ?? true) &&
        (!isFirst || (one.row.newest_commit !== null && !one.isValues)),
    );
  const before = await list();
  if (before.length === 0) return [];
  await queries.lockServices(db, scope, [...new Set(before.map(({ row }) => row.id))]);
  // Read again: they may have been edited before they were locked.
  return mergeSources(await list(), commit);
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

/** Pushes that concern services by their files: those that deploy, and those whose messages ask for no deployment. */
interface Concerns {
  deployed: Set<string>;
  skipped: Set<string>;
}

async function concernsOf(
  { db }: Context,
  of: queries.RepositoryOf,
  chosen: Chosen[],
  moves: Move[],
): Promise<Concerns> {
  const ids = chosen.map(({ row }) => row.id);
  const all = await listRestrictionsByServices(db, { organizationId: of.organization_id }, ids);
  const byService = Map.groupBy(all, (one) => one.service_id);
  const concerned = (some: Move[]) =>
    new Set(
      ids.filter((id) => {
        const own = (byService.get(id) ?? []).map(({ mode, value }) => ({ mode: mode as 'MATCH' | 'EXCLUDE', value }));
        return some.some(({ push }) => isAffected(own, push.paths));
      }),
    );
  return {
    deployed: concerned(moves.filter((move) => !move.isSkipped)),
    skipped: concerned(moves.filter((move) => move.isSkipped)),
  };
}

/** Push in one environment, whose row is locked. */
class EnvironmentPush {
  readonly #context: Context;
  readonly #environment: EnvironmentTarget;
  readonly #target: TargetCommit;
  readonly #makers = new Map<string, Promise<Principal | undefined>>();

  constructor(context: Context, environment: EnvironmentTarget, target: TargetCommit) {
    this.#context = context;
    this.#environment = environment;
    this.#target = target;
  }

  async apply(services: Chosen[], concerns: Concerns): Promise<ServiceOutcome[]> {
    const { db } = this.#context;
    const scope = this.#environment;
    const ids = services.map(({ row }) => row.id);
    const uninstalled = new Set(await queries.listUninstalled(db, scope, ids));
    const underWay = await queries.listUnderWay(db, scope, scope.id);
    const decided = [];
    for (const one of services) {
      const isOut = one.row.wanted === 'stopped' || uninstalled.has(one.row.id);
      const found = concerns.deployed.has(one.row.id)
        ? await this.#decide(one, isOut, underWay.has(one.row.id))
        : { result: concerns.skipped.has(one.row.id) ? 'SKIPPED' : 'NOT_AFFECTED' };
      decided.push({ one, outcome: { serviceId: one.row.id, ...found } as ServiceOutcome });
    }
    const noted = decided.filter(
      ({ one, outcome }) => one.choice.commitId && !['NOT_AFFECTED', 'PUT_OFF'].includes(outcome.result),
    );
    await queries.setNewestCommit(
      db,
      scope,
      noted.map(({ one }) => one.row.id),
      this.#target.newest,
    );
    const due = decided.filter(({ outcome }) => outcome.result === 'DEPLOYED');
    for (const action of ['DEPLOY', 'PLAN'] as const) {
      const group = due.filter(({ one }) => one.kind.capabilities!.autoDeploy!(one.row.spec) === action);
      const refused = group.length === 0 ? undefined : await this.#request(action, group.map(({ one }) => one)); // prettier-ignore
      if (refused !== undefined)
        for (const { outcome } of group) Object.assign(outcome, { result: 'REFUSED', message: refused });
    }
    return decided.map(({ outcome }) => outcome);
  }

  /** Decides what becomes of a service whose files have changed. */
  async #decide(
    { row, kind, choice }: Chosen,
    isOut: boolean,
    isUnderWay: boolean,
  ): Promise<Omit<ServiceOutcome, 'serviceId'>> {
    const { commit, isLate } = this.#target;
    if (kind.capabilities!.autoDeploy!(row.spec) === 'NOTE') return { result: 'NOTED' };
    if (isOut) return { result: 'NOT_RUNNING' };
    if (choice.commitId && !choice.valuesCommitId) {
      const released = (row.release_resolution as { commit?: { id?: string } } | null)?.commit?.id;
      if ((!isLate && row.newest_commit === commit) || (released === commit && !isUnderWay)) return { result: 'KNOWN' };
    }
    if (!(await this.#mayDeploy(row)))
      return {
        result: 'REFUSED',
        message: `Whoever saved ${row.name} last may not deploy it any more: somebody who may must save it again.`,
      };
    return this.#environment.cluster_locked_at === null ? { result: 'DEPLOYED' } : { result: 'PUT_OFF' };
  }

  /**
   * Tells whether the last editor of a service may deploy it now, with the token of that edit. A call from outside adds no permission
   * (docs/decisions/0096-a-push-deploys-with-the-rights-of-the-last-edit.md).
   */
  async #mayDeploy({ last_updated_by: userId, last_updated_with: tokenId }: ServiceRow): Promise<boolean> {
    const key = `${userId} ${tokenId}`;
    const found = this.#makers.get(key) ?? findMakerPrincipal(this.#context, this.#environment, { userId, tokenId });
    this.#makers.set(key, found);
    const maker = await found;
    return maker !== undefined && permits(maker, 'service.deploy', this.#environment);
  }

  /** Requests one deployment of the services, together with those of the push that waits. Returns the reason if it is refused. */
  async #request(action: 'DEPLOY' | 'PLAN', services: Chosen[]): Promise<string | undefined> {
    const context = this.#context;
    const place = placeOfEnvironment(this.#environment);
    const choices = new Map(services.map(({ row, choice }) => [row.id, choice]));
    try {
      if (action === 'PLAN') {
        const plans = new Map([...choices].map(([id, choice]) => [id, { ...choice, event: 'PLAN' as const }]));
        await submit(context, place, 'RUN', [...plans.keys()], { choices: plans, automatic: true });
        return undefined;
      }
      const waiting = await this.#findWaiting();
      for (const { serviceId, commitId, valuesCommitId } of waiting?.services ?? []) {
        const before = { ...(commitId ? { commitId } : {}), ...(valuesCommitId ? { valuesCommitId } : {}) };
        choices.set(serviceId, { ...before, ...choices.get(serviceId) });
      }
      const options = { choices, automatic: true, widens: waiting?.id ?? null };
      const id = await submit(context, place, 'DEPLOY', [...choices.keys()], options);
      const sources = services.flatMap((one) => one.sources);
      await noteCommits(context, id, this.#target.commit, sources);
      return undefined;
    } catch (error) {
      // Thrown before anything is written; the other environments go on.
      if (error instanceof AppError) return error.message;
      throw error;
    }
  }

  /** Finds the deployment of an earlier push that waits, unless one of its services is gone or being deleted. */
  async #findWaiting() {
    const { db } = this.#context;
    const found = await lockWaitingPush(db, this.#environment, this.#environment.id);
    if (!found) return undefined;
    const { services } = found.snapshot;
    const ids = services.map(({ serviceId }) => serviceId);
    return (await queries.countPresent(db, this.#environment, ids)) === ids.length
      ? { id: found.id, services }
      : undefined;
  }
}
