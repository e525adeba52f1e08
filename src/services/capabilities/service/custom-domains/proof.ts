import type { Context } from '#platform/context.ts';
import { inTransaction, systemContext } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import type { Settings } from '#platform/settings/index.ts';
import { lookUpProof, recordOf, type Proof } from '#services/capabilities/service/custom-domains/challenge.ts';
import * as queries from '#services/capabilities/service/custom-domains/queries.ts';
import { toDomainView } from '#services/capabilities/service/custom-domains/view.ts';
import type { HostResolver } from '#platform/dns/resolver.ts';
import { findServiceById, lockService, touchService } from '#services/service/queries.ts';
import { placeOfService } from '#services/service/service.ts';

const HOUR_MS = 3_600_000;

/** Result of the lookups for a claim, not recorded yet. */
export interface Finding {
  claim: queries.CustomDomainRow;
  proof: Proof;
  /** Claim that the domain is taken from, whose own record is gone. */
  former?: { claim: queries.CustomDomainRow; proof: Proof };
}

/**
 * Checks several claims of one service. Their TXT records are looked up together, and the results are written one after another, as each
 * write locks the service. A claim whose record is found gets the domain, also from another organization whose record is gone. Returns each
 * claim as it is then, undefined if it was removed meanwhile. Opens its own transactions.
 */
export async function checkProofs(context: Context, resolver: HostResolver, claims: queries.CustomDomainRow[]) {
  const findings = await Promise.all(claims.map((claim) => lookUpClaim(context, resolver, claim)));
  const rows: (queries.CustomDomainRow | undefined)[] = [];
  for (const finding of findings) rows.push(await recordFinding(context, finding));
  return rows;
}

/** Looks up the TXT record of a claim, and that of the claim which proved the domain, if another did. Writes nothing. */
export async function lookUpClaim(
  context: Context,
  resolver: HostResolver,
  claim: queries.CustomDomainRow,
): Promise<Finding> {
  const proof = await lookUpProof(resolver, claim);
  if (!proof.found || claim.proof_state === 'VALIDATED') return { claim, proof };
  const holder = await queries.findProvenDomain(context.db, claim.domain);
  if (!holder || holder.id === claim.id) return { claim, proof };
  const theirs = await lookUpProof(resolver, holder);
  // A domain stays with the claim that proved it while its record exists or cannot be looked up.
  if (theirs.found !== false) return { claim, proof: { found: false, error: provenByOther(claim) } };
  return { claim, proof, former: { claim: holder, proof: theirs } };
}

/** Writes the result of the lookups. Returns the claim as it is then, undefined if it was removed meanwhile. Opens its own transactions. */
export async function recordFinding(
  context: Context,
  { claim, proof, former }: Finding,
): Promise<queries.CustomDomainRow | undefined> {
  if (former) await record(context, former.claim, former.proof, { isTaken: true });
  try {
    return await record(context, claim, proof);
  } catch (error) {
    if (brokenConstraint(error) !== 'custom_domain_proven') throw error;
    return record(context, claim, { found: false, error: provenByOther(claim) });
  }
}

const provenByOther = (claim: queries.CustomDomainRow): string =>
  `Another organization has proven ${claim.domain}, and its record is still there: leave only your value at ${recordOf(claim).name}.`;

/** Writes the result of a lookup. A claim that was removed or renamed meanwhile is not changed. */
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
      // The routes differ from the last deployment, so the service shows OUT_OF_DATE.
      await touchService(inside.db, scope, claim.service_id);
      const [before, after] = [present, row].map((one) => toDomainView(inside, service, one));
      const place = placeOfService(service, 'CUSTOM_DOMAIN');
      await audit(inside, { ...scope, ...place, type: 'UPDATE', before, after });
    }
    return row;
  });

/** Returns the state of a claim after a lookup. A DNS without an answer says nothing: every state stays. */
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
  if (found === null) return { ...looked, proof_state: state };
  if (state === 'PENDING') {
    const isOver = msSince(claim.claimed_at) > settings.domainClaimDays * 24 * HOUR_MS;
    return { ...looked, proof_state: isOver ? 'EXPIRED' : state };
  }
  if (state !== 'VALIDATED') return { ...looked, proof_state: state };
  const since = claim.proof_missing_since ?? now;
  const isLost = msSince(since) > settings.domainGraceHours * HOUR_MS;
  return { ...looked, proof_state: isLost ? 'LOST' : state, proof_missing_since: since };
}
