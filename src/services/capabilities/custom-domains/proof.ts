import type { Context } from '#platform/context.ts';
import { inTransaction, systemContext } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import type { Settings } from '#platform/settings/index.ts';
import { lookUpProof, recordOf, type Proof } from '#services/capabilities/custom-domains/challenge.ts';
import * as queries from '#services/capabilities/custom-domains/queries.ts';
import { toDomainView } from '#services/capabilities/custom-domains/view.ts';
import type { HostResolver } from '#services/parts/resolver.ts';
import { findServiceById, lockService, touchService } from '#services/service/queries.ts';
import { placeOfService } from '#services/service/service.ts';

const HOUR_MS = 3_600_000;

/**
 * Looks up the TXT record of a claim and records the result: with the record the domain is the organization's, and is taken from another one
 * whose record is gone. Returns the claim as it is then, undefined if it was removed meanwhile. Opens its own transaction.
 */
export async function checkProof(
  context: Context,
  resolver: HostResolver,
  claim: queries.CustomDomainRow,
): Promise<queries.CustomDomainRow | undefined> {
  const seen = await lookUpProof(resolver, claim);
  const proof = seen.found && claim.proof_state !== 'VALIDATED' ? await takeOver(context, resolver, claim) : seen;
  try {
    return await record(context, claim, proof);
  } catch (error) {
    if (brokenConstraint(error) !== 'custom_domain_proven') throw error;
    return record(context, claim, { found: false, error: provenByOther(claim) });
  }
}

/** Takes a domain from the claim that has it proven, unless the record of that one is still there or cannot be looked up. */
async function takeOver(context: Context, resolver: HostResolver, claim: queries.CustomDomainRow): Promise<Proof> {
  const holder = await queries.findProvenDomain(context.db, claim.domain);
  if (!holder || holder.id === claim.id) return { found: true, error: null };
  const proof = await lookUpProof(resolver, holder);
  if (proof.found !== false) return { found: false, error: provenByOther(claim) };
  await record(context, holder, proof, { isTaken: true });
  return { found: true, error: null };
}

const provenByOther = (claim: queries.CustomDomainRow): string =>
  `Another organization has proven ${claim.domain}, and its record is still there: leave only your value at ${recordOf(claim).name}.`;

/** Writes the result of a lookup; a claim that was removed or got another name meanwhile stays as it is. */
const record = (context: Context, claim: queries.CustomDomainRow, proof: Proof, { isTaken = false } = {}) =>
  inTransaction({ ...systemContext(context), db: context.db }, async (inside) => {
    const scope = { organizationId: claim.organization_id };
    await lockService(inside.db, [scope.organizationId], claim.service_id);
    const present = await queries.findDomain(inside.db, scope, claim.service_id, claim.id);
    const service = await findServiceById(inside.db, [scope.organizationId], claim.service_id);
    if (!present || !service || present.challenge !== claim.challenge) return undefined;
    const change = nextProof(present, proof, inside.clock.now(), inside.settings);
    if (isTaken) change.proof_state = 'LOST';
    const row = await queries.recordProof(inside.db, scope, claim.id, change);
    if (row.proof_state !== present.proof_state) {
      // What is routed differs from what was deployed last: the service shows OUT_OF_DATE.
      await touchService(inside.db, scope, claim.service_id);
      const [before, after] = [present, row].map((one) => toDomainView(inside, service, one));
      const place = placeOfService(service, 'CUSTOM_DOMAIN');
      await audit(inside, { ...scope, ...place, type: 'UPDATE', before, after });
    }
    return row;
  });

/** State of a claim after a lookup. A DNS without an answer says nothing: a proven domain stays proven. */
export function nextProof(
  claim: Pick<queries.CustomDomainRow, 'proof_state' | 'claimed_at' | 'proof_missing_since'>,
  { found, error }: Proof,
  now: Date,
  settings: Pick<Settings, 'domainClaimDays' | 'domainGraceHours'>,
): queries.ProofChange {
  const looked = { proof_checked_at: now, proof_error: error };
  const state = claim.proof_state as queries.ProofState;
  const msSince = (date: Date) => now.getTime() - date.getTime();
  if (found && state === 'VALIDATED') return { ...looked, proof_state: state, proof_missing_since: null };
  if (found) return { ...looked, proof_state: 'VALIDATED', proven_at: now, proof_missing_since: null };
  if (state === 'PENDING') {
    const isOver = msSince(claim.claimed_at) > settings.domainClaimDays * 24 * HOUR_MS;
    return { ...looked, proof_state: isOver ? 'EXPIRED' : state };
  }
  if (state !== 'VALIDATED' || found === null) return { ...looked, proof_state: state };
  const since = claim.proof_missing_since ?? now;
  const isLost = msSince(since) > settings.domainGraceHours * HOUR_MS;
  return { ...looked, proof_state: isLost ? 'LOST' : state, proof_missing_since: since };
}
