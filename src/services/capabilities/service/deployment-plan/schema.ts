import { DateTime, named, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { ACTIONS, STEP_NAMES } from '#deployments/index.ts';
import { RECORD_SCOPES, VARIABLE_TYPES } from '#deployments/model/variables.ts';

/** Calls whose effect can be asked for. */
const PLANNED = ['DEPLOY', 'REDEPLOY', 'ROLLBACK', 'STOP', 'RESTART', 'UNINSTALL', 'DELETE'] as const;

/** Description that every route for plans has. */
export const PLAN_DESCRIPTION =
  'Stages, services and steps, what would change in each since its last release, and why it would be built, replaced or left alone. Nothing is requested. Sources are asked for their newest commits.';

export const PlanQuery = Type.Object({
  action: Type.Optional(OneOf(PLANNED, { default: 'DEPLOY', description: 'What would be requested.' })),
  executionId: Type.Optional(
    Type.String({ maxLength: 64, description: 'Execution to go back to; with the action ROLLBACK, and only there.' }),
  ),
});

const Commit = named(
  'PlannedCommit',
  Type.Object({
    git_commit_id: Type.String(),
    message: Type.String(),
    author_name: Type.String(),
    created_at: DateTime,
  }),
);
/** Leaf of a configuration: any JSON value. */
const Value = Type.Optional(Type.Any({ description: 'Left out where there is none.' }));

const PlannedService = named(
  'PlannedService',
  Type.Object({
    id: Uuid,
    name: Type.String(),
    service_type: Type.String(),
    steps: Type.Array(OneOf(STEP_NAMES), { description: 'What is done, in this order.' }),
    rollout: OneOf(['ROLLING', 'RECREATE', 'NONE'], {
      description:
        'ROLLING: new instances take the traffic when they are ready, then the old ones end. RECREATE: the old ones end first, because there is storage.',
    }),
    reason: Type.String({ description: 'Why it is built, applied or left alone.' }),
    changes: Type.Object({
      commit: Type.Optional(Type.Object({ from: Type.Optional(Commit), to: Type.Optional(Commit) })),
      settings: Type.Array(Type.Object({ path: Type.String(), from: Value, to: Value })),
      variables: Type.Array(
        Type.Object({
          key: Type.String(),
          change: OneOf(['ADDED', 'REMOVED', 'CHANGED']),
          is_secret: Type.Boolean({ description: 'The values of secrets are left out.' }),
          scope: OneOf(RECORD_SCOPES),
          variable_type: OneOf(VARIABLE_TYPES),
          from: Type.Optional(Type.String()),
          to: Type.Optional(Type.String()),
        }),
      ),
      objects: Type.Optional(
        Type.Array(
          Type.Object({
            object: Type.String({ description: 'Kind and name, such as `Deployment app-z1a2b3c4d`.' }),
            change: OneOf(['CREATED', 'CHANGED', 'REMOVED', 'REFUSED']),
            message: Type.Optional(Type.String({ description: 'Why the cluster would refuse the object.' })),
            fields: Type.Array(Type.Object({ path: Type.String(), from: Value, to: Value })),
          }),
          {
            description:
              'Changes of the objects in the cluster, as the cluster answers them, what others changed by hand among them. Only of deployed services on Kubernetes. Variables and credentials are left out.',
          },
        ),
      ),
      objects_unknown: Type.Optional(
        Type.String({ description: 'Why the cluster could not tell how its objects would change.' }),
      ),
    }),
  }),
);

/** Plan of a request: its stages, services and steps. */
export const DeploymentPlan = named(
  'DeploymentPlan',
  Type.Object({
    environment_id: Uuid,
    action: OneOf(ACTIONS),
    stages: Type.Array(
      Type.Object({
        id: Uuid,
        name: Type.String(),
        services: Type.Array(PlannedService, { description: 'They are worked on side by side.' }),
      }),
      { description: 'In the order in which they are carried out.' },
    ),
  }),
);
