import { badRequest } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, OneOf, Type } from '#platform/http/schema.ts';

const tag = 'Referral & Rewards';

const Referral = named(
  'Referral',
  Type.Object({ total_invited: Type.Integer(), invitation_link: Type.Optional(Type.String()) }),
);

const RewardClaim = named(
  'RewardClaim',
  Type.Object({
    type: Type.Optional(OneOf(['INVITATION'])),
    code: Type.Optional(Type.String({ maxLength: 255 })),
  }),
);

/** Referral programme of the reference interface: an installation of one's own has none (decision 0043). */
export const referralRoutes: Route[] = [
  defineRoute({
    id: 'getAccountReferral',
    method: 'GET',
    path: '/account/referral',
    tag,
    summary: 'Get how many people you have referred: none',
    description: 'This installation has no referral programme: nobody is counted, and there is no invitation link.',
    action: 'authenticated',
    answer: { status: 200, body: Referral },
    handler: () => ({ total_invited: 0 }),
  }),
  defineRoute({
    id: 'postAccountRewardClaim',
    method: 'POST',
    path: '/account/rewardClaim',
    tag,
    summary: 'Claim a reward: refused, with the reason',
    description: 'This installation has no referral programme, so that every claim is answered with 400.',
    action: 'authenticated',
    body: RewardClaim,
    optionalBody: true,
    answer: { status: 200, body: Type.Object({}) },
    handler: () => {
      throw badRequest('This installation has no referral programme: there is no reward to claim.');
    },
  }),
];
