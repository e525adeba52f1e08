import type { Registry } from 'prom-client';
import type { Platform } from '#platform/context.ts';
import { unsupportedCertificates, type CertificateStatus, type Router } from '#runtimes/router.ts';
import type { ClusterRuntimes } from '#runtimes/runtime.ts';
import { withDeadline } from '#kernel/deadline.ts';
import { storable } from '#kernel/storable.ts';
import { Periodic } from '#platform/work/periodic.ts';
import { renewGauge } from '#platform/telemetry/gauges.ts';
import { listCertificateDomains, recordCertificate } from '#services/capabilities/service/custom-domains/index.ts';

type CertificateDomain = Awaited<ReturnType<typeof listCertificateDomains>>[number];

const LOOK_MS = 10_000;
/** Seconds that a proxy or a cluster has to tell of its certificates. */
const ANSWER_SECONDS = 30;

/** Records the state of the certificates of this node's proxy and of watched clusters, for answers and for Prometheus. */
export class CertificateWatcher {
  readonly #platform: Platform;
  readonly #router: () => Promise<Router>;
  readonly #nodeId: string;
  readonly #runtimes: ClusterRuntimes | null;
  #known: CertificateStatus[] = [];
  readonly #ending = new AbortController();
  readonly #looks: Periodic;

  constructor(
    platform: Platform,
    router: () => Promise<Router>,
    nodeId: string,
    registry: Registry,
    runtimes: ClusterRuntimes | null = null,
  ) {
    this.#runtimes = runtimes;
    this.#platform = platform;
    this.#router = router;
    this.#nodeId = nodeId;
    const warn = (error: unknown) => {
      if (!this.#ending.signal.aborted) platform.log.warn({ err: error }, 'cannot look after certificates');
    };
    this.#looks = new Periodic(LOOK_MS, () => this.#lookOnce(), warn);
    const known = () => this.#known;
    renewGauge(registry, {
      name: 'quarterdeck_certificates',
      help: 'Certificates of custom domains on this node, by state.',
      labelNames: ['state'],
      collect() {
        this.reset();
        for (const [state, all] of Map.groupBy(known(), (one) => one.state)) this.set({ state }, all.length);
      },
    });
    renewGauge(registry, {
      name: 'quarterdeck_certificate_expiry_timestamp_seconds',
      help: 'End of validity of the certificate of a custom domain, in seconds since 1970.',
      labelNames: ['domain'],
      collect() {
        this.reset();
        for (const { host, expiresAt } of known()) if (expiresAt !== null) this.set({ domain: host }, expiresAt / 1000);
      },
    });
  }

  start(): void {
    this.#looks.start();
  }

  stop(): Promise<void> {
    this.#ending.abort();
    return this.#looks.stop();
  }

  /** Looks once; a look that is under way already is joined. */
  look(): Promise<void> {
    return this.#looks.look();
  }

  async #lookOnce(): Promise<void> {
    const domains = await listCertificateDomains(this.#platform.db, this.#nodeId);
    const known: CertificateStatus[] = [];
    const groups = Map.groupBy(domains, ({ cluster_id: id, is_apart: isApart }) => (isApart ? id : null));
    for (const [clusterId, some] of groups)
      try {
        known.push(...(await this.#lookAt(some)));
      } catch (error) {
        if (this.#ending.signal.aborted) throw error;
        this.#platform.log.warn({ err: error, clusterId }, 'cannot look after certificates of a cluster');
      }
    this.#known = known;
  }

  /** Looks after domains of one cluster, or of all clusters behind this node's proxy. */
  async #lookAt(domains: CertificateDomain[]): Promise<CertificateStatus[]> {
    const known = await this.#ask(domains);
    for (const [at, status] of known.entries()) {
      const domain = domains[at]!;
      // What is wrong with one domain keeps none of the others from being recorded.
      await this.#record(domain, status).catch((error: unknown) =>
        this.#platform.log.warn({ err: error, domain: domain.domain }, 'cannot record the state of a certificate'),
      );
    }
    return known;
  }

  /** Asks the proxy or the cluster. Throws where it does not answer in time, or the watcher ends: nobody waits for it then. */
  #ask(domains: CertificateDomain[]): Promise<CertificateStatus[]> {
    const late = (cause: unknown) => new Error(`No answer within ${ANSWER_SECONDS} s.`, { cause });
    const hosts = domains.map(({ domain }) => domain);
    const [{ cluster_id: id, runtime: name, is_apart: isApart }] = domains as [CertificateDomain];
    return withDeadline(this.#ending.signal, { seconds: ANSWER_SECONDS, patience: () => 0, late }, async () => {
      if (!isApart) return (await this.#router()).certificates(hosts);
      const runtime = await this.#runtimes?.runtimeOf({ id, runtime: name });
      return runtime?.certificates?.(hosts) ?? unsupportedCertificates(hosts);
    });
  }

  async #record(domain: CertificateDomain, { state, expiresAt, lastError }: CertificateStatus): Promise<void> {
    const found = {
      certificate_state: state,
      certificate_expires_at: expiresAt === null ? null : new Date(expiresAt),
      certificate_error: lastError === null ? null : storable(lastError),
    };
    const isSame =
      domain.certificate_state === found.certificate_state &&
      domain.certificate_expires_at?.getTime() === found.certificate_expires_at?.getTime() &&
      domain.certificate_error === found.certificate_error;
    if (isSame) return;
    await recordCertificate(this.#platform.db, { organizationId: domain.organization_id }, domain, found);
  }
}
