import type { Context } from '#platform/context.ts';
import { DateTime, named, Nullable, OneOf, Type } from '#platform/http/schema.ts';
import type { CustomDomainRow } from '#services/capabilities/service/custom-domains/queries.ts';

const CERTIFICATE_STATES = ['UNSUPPORTED', 'PENDING', 'ISSUED', 'FAILED'] as const;
export type CertificateState = (typeof CERTIFICATE_STATES)[number];

/** Certificate of a custom domain as it is answered. */
export const CertificateSchema = Nullable(
  named(
    'CustomDomainCertificate',
    Type.Object({
      state: OneOf(CERTIFICATE_STATES, {
        description:
          'PENDING: it is being obtained, or the service has not been deployed since. FAILED: it is tried again by itself. UNSUPPORTED: the proxy of the cluster serves no HTTPS; install Caddy there and set QUARTERDECK_PROXY=caddy. On Kubernetes last_error says what the cluster lacks.',
      }),
      expires_at: Nullable(DateTime),
      last_error: Nullable(Type.String({ description: 'Reason of the last attempt, null if it succeeded.' })),
    }),
  ),
);

/**
 * Returns the certificate of a domain; null if the domain asks for none. The node's proxy is asked about proven domains only;
 * until then the setting tells whether there will be a certificate.
 */
export const certificateView = (
  { settings }: Pick<Context, 'settings'>,
  row: Pick<
    CustomDomainRow,
    'generate_certificate' | 'certificate_state' | 'certificate_expires_at' | 'certificate_error'
  >,
) =>
  row.generate_certificate
    ? {
        state: (row.certificate_state ??
          (settings.proxy === 'builtin' ? 'UNSUPPORTED' : 'PENDING')) as CertificateState,
        expires_at: row.certificate_expires_at?.toISOString() ?? null,
        last_error: row.certificate_error,
      }
    : null;
