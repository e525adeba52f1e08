import type { DriftedField, WatchListener, WorkloadIdentity } from '#runtimes/runtime.ts';
import type { Cluster } from '../cluster.ts';
import type { FormerPods } from '../former-logs.ts';
import type { KeptDeployment, KeptObjects, KeptService, RecordSummary } from '../kept.ts';
import type { Pod } from '../kinds.ts';
import { namespaceOf } from '../labels.ts';
import { recordName } from '../record/index.ts';
import { Informer, type InformerTimes } from './informer.ts';
import { reduceDeployment, reducePod, reduceRecord, reduceService } from './reduced.ts';

/** Milliseconds that a cache is kept after its last use: deployments often follow each other. */
const LINGER_MS = 120_000;

/** Objects of the installation in a cluster, kept by one watch for each kind while a caller uses them. */
export class ClusterCache implements KeptObjects {
  readonly #listeners = new Set<WatchListener>();
  readonly #checked = new Map<string, { owners: string; drift: DriftedField[] }>();
  readonly #deployments: Informer<KeptDeployment>;
  readonly #pods: Informer<Pod>;
  readonly #records: Informer<RecordSummary>;
  readonly #services: Informer<{ isOurs: boolean }>;
  #running: { end: AbortController; ended: Promise<unknown> } | undefined;
  #linger: NodeJS.Timeout | undefined;
  /** State that listeners were told last. */
  #told: boolean | undefined;

  /** `former` sees each pod that the cluster tells. */
  constructor(cluster: Cluster, times: Partial<InformerTimes> = {}, former?: Pick<FormerPods, 'see'>) {
    const changed = (serviceId: string) => {
      if (!this.#deployments.has(serviceId)) this.#checked.delete(serviceId);
      for (const listener of this.#listeners) listener.changed(serviceId);
    };
    const turned = (reason: string | null) => this.#turn(reason);
    const common = { changed, turned, times };
    this.#deployments = new Informer(cluster, { ...common, kind: 'Deployment', reduce: reduceDeployment });
    this.#pods = new Informer(cluster, {
      ...common,
      kind: 'Pod',
      reduce: reducePod,
      seen: (pod) => former?.see(pod as Pod),
    });
    this.#records = new Informer(cluster, {
      ...common,
      kind: 'ConfigMap',
      reduce: (object) => reduceRecord(cluster, object),
    });
    this.#services = new Informer(cluster, { ...common, kind: 'Service', isMetadata: true, reduce: reduceService });
  }

  get #informers() {
    return [this.#deployments, this.#pods, this.#records, this.#services];
  }

  get isCurrent(): boolean {
    return this.#informers.every(({ isCurrent }) => isCurrent);
  }

  /** Number of objects that are kept. */
  get size(): number {
    return this.#informers.reduce((sum, { size }) => sum + size, 0);
  }

  use(listener: WatchListener): () => void {
    clearTimeout(this.#linger);
    this.#listeners.add(listener);
    if (!this.#running) {
      const end = new AbortController();
      const runs = this.#informers.map((informer) => informer.run(end.signal));
      this.#running = { end, ended: Promise.all(runs) };
    } else if (this.isCurrent) listener.turned?.(null);
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
      this.#linger = setTimeout(() => void this.close(), LINGER_MS).unref();
    };
  }

  of(identity: WorkloadIdentity, hostname: string): KeptService | null {
    if (!this.isCurrent) return null;
    const { serviceId } = identity;
    const namespace = namespaceOf(identity);
    return {
      record: this.#records.get(serviceId, namespace, recordName(serviceId)),
      deployment: this.#deployments.get(serviceId, namespace, hostname),
      service: this.#services.get(serviceId, namespace, hostname),
      pods: this.#pods.of(serviceId, namespace),
    };
  }

  driftOf(serviceId: string, owners: string): DriftedField[] | undefined {
    const checked = this.#checked.get(serviceId);
    return checked?.owners === owners ? checked.drift : undefined;
  }

  noteDrift(serviceId: string, owners: string, drift: DriftedField[]): void {
    if (this.#running) this.#checked.set(serviceId, { owners, drift });
  }

  /** Lists everything anew: the connection leads elsewhere. */
  restart(): void {
    for (const informer of this.#informers) informer.restart();
  }

  /** Opens all watches anew: the cluster did not answer something else. */
  doubt(): void {
    for (const informer of this.#informers) informer.doubt();
  }

  async close(): Promise<void> {
    clearTimeout(this.#linger);
    const running = this.#running;
    this.#running = undefined;
    this.#checked.clear();
    running?.end.abort();
    await running?.ended;
  }

  #turn(reason: string | null): void {
    const { isCurrent } = this;
    // Until the first failure the kinds become current one after the other.
    if (isCurrent === this.#told || (!isCurrent && reason === null)) return;
    this.#told = isCurrent;
    for (const listener of this.#listeners) listener.turned?.(isCurrent ? null : reason);
  }
}
