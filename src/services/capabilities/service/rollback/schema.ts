import { named, Type } from '#platform/http/schema.ts';

export const RollbackRequest = named(
  'RollbackRequest',
  Type.Object({
    execution_id: Type.String({
      maxLength: 64,
      description: 'Execution to go back to, as the histories name it. It must have deployed with success.',
    }),
  }),
);

/** Description that every route for going back has. */
export const ROLLBACK_DESCRIPTION =
  'Deploys what that execution deployed: image, configuration and variables as they were, secrets in their version of then. The stored configuration stays as it is: where configuration, variables or commit of then are not the present ones, the service shows OUT_OF_DATE.';
