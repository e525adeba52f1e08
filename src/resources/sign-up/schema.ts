import { DateTime, Merge, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';

const Answer = Type.String({ maxLength: 2000 });
const OptionalAnswer = Type.Optional(Nullable(Answer));

const SignUpAnswers = Type.Object({
  first_name: Type.String({ maxLength: 255 }),
  last_name: Type.String({ maxLength: 255 }),
  user_email: Type.String({ format: 'email', maxLength: 320 }),
  type_of_use: OneOf(['PERSONAL', 'SCHOOL', 'WORK']),
  qovery_usage: Answer,
  company_name: OptionalAnswer,
  company_size: Type.Optional(OneOf(['1-10', '11-50', '51-200', '201-500', '500+'])),
  user_role: OptionalAnswer,
  qovery_usage_other: OptionalAnswer,
  user_questions: OptionalAnswer,
  current_step: OptionalAnswer,
  dx_auth: Type.Optional(Nullable(Type.Boolean())),
  infrastructure_hosting: OptionalAnswer,
});

export const SignUpRequest = named('SignUpRequest', SignUpAnswers);

export const SignUp = named(
  'SignUp',
  Merge(Type.Object({ id: Uuid, created_at: DateTime, updated_at: DateTime }), SignUpAnswers),
);

const OnboardingStatus = OneOf(['IN_PROGRESS', 'DISMISSED', 'COMPLETED']);

export const OrganizationOnboardingRequest = named(
  'OrganizationOnboardingRequest',
  Type.Object({
    status: Type.Optional(OnboardingStatus),
    use_cases: Type.Optional(
      Nullable(Type.String({ maxLength: 2000, description: 'Use cases, separated by commas.' })),
    ),
  }),
);

/** docs/contributing/rules.md, *Other records* */
export const OrganizationOnboarding = named(
  'OrganizationOnboarding',
  Type.Object({ use_cases: Type.String(), status: OnboardingStatus }),
);
