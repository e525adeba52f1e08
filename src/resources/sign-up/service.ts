import { forbidden, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Static } from 'typebox';
import { includes } from '#platform/access/actions.ts';
import { highestLevelOf } from '#platform/access/granting.ts';
import { grantIn, type Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import * as queries from '#resources/sign-up/queries.ts';
import type { OrganizationOnboardingRequest, SignUpRequest } from '#resources/sign-up/schema.ts';

const toSignUpView = (row: queries.SignUpRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  ...(row.answers as Static<typeof SignUpRequest>),
});

/** Returns the caller's answers at sign-up; 404 if there are none yet. */
export async function getSignUp(context: Context, userId: string) {
  const row = await queries.findSignUp(context.db, userId);
  if (!row) throw notFound('Sign-up');
  return toSignUpView(row);
}

/** Stores the caller's answers at sign-up; earlier answers are replaced. */
export async function saveSignUp(context: Context, principal: Principal, answers: Static<typeof SignUpRequest>) {
  const { userId } = principal;
  const before = await queries.findSignUp(context.db, userId);
  const row = await queries.saveSignUp(context.db, newId(), userId, answers);
  await queries.nameAccount(context.db, userId, answers.first_name.trim(), answers.last_name.trim());
  const view = toSignUpView(row);
  for (const { organizationId } of principal.grants)
    await audit(context, {
      organizationId,
      type: before ? 'UPDATE' : 'CREATE',
      target: { type: 'MEMBERS_AND_ROLES', id: userId, name: principal.name },
      before: before && toSignUpView(before),
      after: view,
    });
  return view;
}

/** The caller's own onboarding (docs/contributing/rules.md 27). */
export async function getOnboarding(context: Context, userId: string) {
  const row = await queries.findOnboarding(context.db, userId);
  return { use_cases: row.onboarding_use_cases, status: row.onboarding_status };
}

/** A token that only reads does not change its creator's record; people change their own, whatever their role. */
function refuseReadToken(principal: Principal, organizationId: string): void {
  const grant = grantIn(principal, organizationId);
  if (principal.kind === 'token' && !(grant && includes(highestLevelOf(grant), 'DEPLOY')))
    throw forbidden(
      'Your token only reads: changing the onboarding takes a token of scope DEPLOY or higher, or a session.',
    );
}

/** Changes the caller's own onboarding; what is left out stays, and an empty body changes nothing. */
export async function editOnboarding(
  context: Context,
  organizationId: string,
  principal: Principal,
  input: Static<typeof OrganizationOnboardingRequest>,
) {
  refuseReadToken(principal, organizationId);
  const before = await getOnboarding(context, principal.userId);
  const after = { use_cases: input.use_cases ?? before.use_cases, status: input.status ?? before.status };
  if (after.use_cases === before.use_cases && after.status === before.status) return before;
  await queries.updateOnboarding(context.db, principal.userId, after.status, after.use_cases);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    target: { type: 'MEMBERS_AND_ROLES', id: principal.userId, name: principal.name },
    before,
    after,
  });
  return after;
}
