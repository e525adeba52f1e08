import { refuseConditions } from '#platform/access/granting.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import {
  OrganizationOnboarding,
  OrganizationOnboardingRequest,
  SignUp,
  SignUpRequest,
} from '#resources/sign-up/schema.ts';
import { editOnboarding, getOnboarding, getSignUp, saveSignUp } from '#resources/sign-up/service.ts';

export const signUpRoutes: Route[] = [
  defineRoute({
    id: 'getUserSignUp',
    method: 'GET',
    path: '/admin/userSignUp',
    tag: 'User Sign Up',
    summary: 'Get what you said at sign-up',
    description: 'Answers what you said last; 404 until you have said something.',
    action: 'authenticated',
    answer: { status: 200, body: SignUp },
    handler: (call) => getSignUp(call, call.principal.userId),
  }),
  defineRoute({
    id: 'createUserSignUp',
    method: 'POST',
    path: '/admin/userSignUp',
    tag: 'User Sign Up',
    summary: 'Say who you are at sign-up',
    description:
      'Stores your answers in place of earlier ones. Names that the identity provider left out are taken from here.',
    action: 'authenticated',
    body: SignUpRequest,
    answer: { status: 200, body: SignUp },
    handler: (call) => {
      refuseConditions(call.principal);
      return saveSignUp(call, call.principal, call.body);
    },
  }),
  defineRoute({
    id: 'getOrganizationOnboarding',
    method: 'GET',
    path: '/organization/{organizationId}/onboarding',
    tag: 'Organization Main Calls',
    summary: 'Get your own onboarding',
    description:
      'Answers your own record, whichever of your organizations the path names; at first it is IN_PROGRESS without use cases.',
    target: organizationTarget,
    action: 'account.read',
    answer: { status: 200, body: OrganizationOnboarding },
    handler: (call) => getOnboarding(call, call.principal.userId),
  }),
  defineRoute({
    id: 'updateOrganizationOnboarding',
    method: 'POST',
    path: '/organization/{organizationId}/onboarding',
    tag: 'Organization Main Calls',
    summary: 'Update your own onboarding',
    description:
      'Only your own sign-up record is changed; a token acts for its creator. An empty body changes nothing.',
    target: organizationTarget,
    action: 'account.edit',
    body: OrganizationOnboardingRequest,
    optionalBody: true,
    answer: { status: 200, body: OrganizationOnboarding },
    handler: (call) => editOnboarding(call, call.target.organizationId, call.principal, call.body),
  }),
];
