import { shortId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { createEnvironment, environmentOfNamespace } from '#resources/environment/index.ts';
import { createProject, projectTarget } from '#resources/project/index.ts';
import * as queries from '#services/kinds/argocd-app/queries.ts';
import { findDefaultStage } from '#services/service/queries.ts';

/** Project of the apps whose namespace is no environment's (docs/contributing/rules.md 39). */
const PROJECT = 'argocd';

/** Stage of the services that represent apps; it gets no deployment because of them. */
const STAGE = 'APPLICATION DEFAULT';

export interface Place {
  environmentId: string;
  stageId: string;
}

/** Finds the environment and stage of each app; looks up each of them once. */
export class Places {
  readonly #context: Context;
  readonly #scope: Scope;
  readonly #known = new Map<string, Promise<Place | undefined>>();

  constructor(context: Context, scope: Scope) {
    this.#context = context;
    this.#scope = scope;
  }

  /**
   * Returns the environment of the cluster whose Kubernetes namespace is the app's. Else it is the cluster's environment in the project of
   * apps, which is created on demand (docs/contributing/rules.md 39). Undefined while that project or environment is being deleted.
   */
  async of(clusterId: string, namespace: string): Promise<Place | undefined> {
    const digits = environmentOfNamespace(namespace);
    const own = digits && (await this.#once(`${clusterId}/${digits}`, () => this.#byDigits(clusterId, digits)));
    return own || this.#once(clusterId, () => this.#fallback(clusterId));
  }

  #once(key: string, find: () => Promise<Place | undefined>): Promise<Place | undefined> {
    const found = this.#known.get(key) ?? find();
    this.#known.set(key, found);
    return found;
  }

  async #byDigits(clusterId: string, digits: string): Promise<Place | undefined> {
    const found = await queries.holdEnvironmentByDigits(this.#context.db, this.#scope, clusterId, digits);
    return found && this.#place(found.id);
  }

  async #fallback(clusterId: string): Promise<Place | undefined> {
    const { db } = this.#context;
    await queries.holdProjectOfApps(db, this.#scope.organizationId);
    const project = await this.#project();
    if (project.deleting) return undefined;
    const environments = await queries.holdEnvironments(db, this.#scope, project.id);
    const present = environments.find((environment) => environment.cluster_id === clusterId);
    if (present) return present.deleting ? undefined : this.#place(present.id);
    const cluster = await queries.findCluster(db, this.#scope, clusterId);
    const taken = environments.some(({ name }) => name.toLowerCase() === cluster.name.toLowerCase());
    const made = await createEnvironment(this.#context, project, {
      name: taken ? `${cluster.name} ${shortId(cluster.id)}` : cluster.name,
      mode: cluster.production ? 'PRODUCTION' : 'DEVELOPMENT',
      cluster_id: cluster.id,
    });
    return this.#place(made.id);
  }

  async #project() {
    const { db } = this.#context;
    const { organizationId } = this.#scope;
    const known = await queries.findProjectByName(db, this.#scope, PROJECT);
    const id =
      known?.id ??
      (await createProject(this.#context, organizationId, { name: PROJECT, description: 'Apps of Argo CD' })).id;
    // Held against its deletion until the commit.
    return (await projectTarget.find(db, id, [organizationId], { lock: true }))!;
  }

  async #place(environmentId: string): Promise<Place> {
    const stage = await findDefaultStage(this.#context.db, this.#scope, environmentId, STAGE);
    return { environmentId, stageId: stage.id };
  }
}
