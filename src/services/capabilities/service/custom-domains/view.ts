import type { Context } from '#platform/context.ts';
import { certificateView } from '#services/capabilities/service/custom-domains/certificate.ts';
import { recordOf } from '#services/capabilities/service/custom-domains/challenge.ts';
import type { CustomDomainRow, ProofState } from '#services/capabilities/service/custom-domains/queries.ts';
import { hostnameOf } from '#services/ports/ports.ts';
import type { ServiceRow } from '#services/service/queries.ts';

type Service = Pick<ServiceRow, 'id' | 'kind' | 'spec'>;

/** Host name that a service's domains have to lead to: the one that its default port has by itself. */
export const validationDomainOf = ({ settings }: Pick<Context, 'settings'>, service: Service): string =>
  `${hostnameOf(service.kind, service.id, service.spec.type)}.${settings.proxyDomain}`;

/** A domain as it is answered. */
export const toDomainView = (context: Pick<Context, 'settings'>, service: Service, row: CustomDomainRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  domain: row.domain,
  generate_certificate: row.generate_certificate,
  use_cdn: row.use_cdn,
  validation_domain: validationDomainOf(context, service),
  ...proofView(row),
  certificate: certificateView(context, row),
  ...(row.validated_at && row.proof_state === 'VALIDATED' ? {} : { status: 'VALIDATION_PENDING' as const }),
});

/** Proof of a domain as it is answered: the record to create, and what its last lookup showed. */
const proofView = (row: CustomDomainRow) => ({
  validation_record: recordOf(row),
  validation_state: row.proof_state as ProofState,
  validation_error: row.proof_error,
  validation_checked_at: row.proof_checked_at?.toISOString() ?? null,
});
