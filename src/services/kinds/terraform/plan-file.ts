import { named, Nullable, OneOf, Type } from '#platform/http/schema.ts';
import { PLAN_ACTIONS } from '#kernel/parsing/terraform-plan.ts';

const Change = Type.Object({
  address: Type.String(),
  previous_address: Nullable(Type.String({ description: 'Where it stood before it was moved.' })),
  mode: OneOf(['managed', 'data']),
  resource_type: Type.String(),
  name: Type.String(),
  provider: Type.String(),
  action: OneOf(PLAN_ACTIONS),
  reason: Nullable(Type.String({ description: 'Why it is replaced or deleted, in the words of Terraform.' })),
  before: Type.Any({ description: 'Null, or without sensitive values.' }),
  after: Type.Any({ description: 'Without sensitive values; what is known after the apply only says so.' }),
});

const OutputChange = Type.Object({
  name: Type.String(),
  action: OneOf(PLAN_ACTIONS),
  before: Type.Any(),
  after: Type.Any(),
});

/** Plan as data, for people and their tools. */
export const PlanContent = named(
  'TerraformPlanContent',
  Type.Object({
    summary: Type.Object({
      create: Type.Integer(),
      update: Type.Integer(),
      replace: Type.Integer(),
      delete: Type.Integer(),
    }),
    changes: Type.Array(Change),
    outputs: Type.Array(OutputChange),
  }),
);
