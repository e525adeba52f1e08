import { Gauge, type Registry } from 'prom-client';
import type { Platform } from '#platform/context.ts';
import type { CertificateStatus, Router } from '#runtimes/router.ts';
import { listCertificateDomains, recordCertificate } from '#services/capabilities/custom-domains/index.ts';

const LOOK_MS = 10_000;

/** Records the state of the certificates that this node's proxy has, for answers and for Prometheus. */
export class CertificateWatcher {
  readonly #platform: Platform;
  readonly #router: () => Promise<Router>;
  readonly #nodeId: string;
  #known: CertificateStatus[] = [];
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(platform: Platform, router: () => Promise<Router>, nodeId: string, registry: Registry) {
    this.#platform = platform;
    this.#router = router;
    this.#nodeId = nodeId;
    const known = () => this.#known;
    new Gauge({
      name: 'quarterdeck_certificates',
      help: 'Certificates of custom domains on this node, by state.',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        this.reset();
        for (const [state, all] of Map.groupBy(known(), (one) => one.state)) this.set({ state }, all.length);
      },
    });
    new Gauge({
      name: 'quarterdeck_certificate_expiry_timestamp_seconds',
      help: 'End of validity of the certificate of a custom domain, in seconds since 1970.',
      labelNames: ['domain'],
      registers: [registry],
      collect() {
        this.reset();
        for (const { host, expiresAt } of known()) if (expiresAt !== null) this.set({ domain: host }, expiresAt / 1000);
      },
    });
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    void this.look();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Looks once; a look that is under way already is joined. */
  look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce()
      .catch((error: unknown) => this.#platform.log.warn({ err: error }, 'cannot look after certificates'))
      .finally(() => (this.#looking = undefined)));
  }

  async #lookOnce(): Promise<void> {
    const { db } = this.#platform;
    const domains = await listCertificateDomains(db, this.#nodeId);
    if (domains.length === 0) return void (this.#known = []);
    this.#known = await (await this.#router()).certificates(domains.map(({ domain }) => domain));
    for (const [at, status] of this.#known.entries()) {
      const domain = domains[at]!;
      const expiresAt = status.expiresAt === null ? null : new Date(status.expiresAt);
      const isSame =
        domain.certificate_state === status.state &&
        domain.certificate_expires_at?.getTime() === expiresAt?.getTime() &&
        domain.certificate_error === status.lastError;
      if (isSame) continue;
      await recordCertificate(db, { organizationId: domain.organization_id }, domain, {
        certificate_state: status.state,
        certificate_expires_at: expiresAt,
        certificate_error: status.lastError,
      });
    }
  }
}
