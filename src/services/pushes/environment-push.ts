import { AppError } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { lockWaitingPush } from '#deployments/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment, submit } from '#services/capabilities/service/actions/request.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { noteCommits } from '#services/pushes/commit-status.ts';
import type { Follower } from '#services/pushes/followers.ts';
import type { ServiceOutcome } from '#services/pushes/outcome.ts';
import * as queries from '#services/pushes/service-queries.ts';
import { LastEditors } from '#services/service/last-editor.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Service that follows a branch, with the commits that it gets. */
export interface Chosen {
  row: ServiceRow;
  kind: Kind;
  choice: DeployChoice;
  sources: Follower[];
}

/** Commit that services get. */
export interface TargetCommit {
  commit: string;
  /** Head of the branch: a later commit where its message asks for no deployment. */
  newest: string;
  /** True for a push that was put off: services know its commit, and did not get it. */
  isLate: boolean;
  /** Names of the authors of the new heads. */
  authors: string;
}

/** Pushes that concern services by their files: those that deploy, and those whose messages ask for no deployment. */
export interface Concerns {
  deployed: Set<string>;
  skipped: Set<string>;
}

/** Push in one environment, whose row is locked. */
export class EnvironmentPush {
  readonly #context: Context;
  readonly #environment: EnvironmentTarget;
  readonly #target: TargetCommit;
  readonly #editors: LastEditors;

  constructor(context: Context, environment: EnvironmentTarget, target: TargetCommit) {
    this.#context = context;
    this.#environment = environment;
    this.#target = target;
    this.#editors = new LastEditors(context, environment);
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
    const refusal = await this.#editors.refusal(row);
    if (refusal !== undefined) return { result: 'REFUSED', message: refusal };
    return this.#environment.cluster_locked_at === null ? { result: 'DEPLOYED' } : { result: 'PUT_OFF' };
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
