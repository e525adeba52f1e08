import { notFound } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';
import { outputPathOf } from '#deployments/index.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { templatesFor } from '#services/lifecycle-template/templates.ts';

const summary = { id: Uuid, name: Type.String(), description: Type.String() };

const LifecycleTemplateSummary = named('LifecycleTemplateSummary', Type.Object(summary));

const LifecycleTemplate = named(
  'LifecycleTemplate',
  Type.Object({
    ...summary,
    sourceUrl: Type.String({ format: 'uri' }),
    cloud_provider: OneOf(['AWS', 'SCW', 'GCP', 'ON_PREMISE', 'AZURE']),
    events: Type.Array(
      Type.Object({
        name: Type.String(),
        entrypoint: Type.Optional(Type.String()),
        command: Type.Array(Type.String()),
      }),
    ),
    max_duration_in_sec: Type.Integer(),
    resources: Type.Object({ cpu_milli: Type.Integer(), ram_mib: Type.Integer() }),
    variables: Type.Array(
      Type.Object({
        name: Type.String(),
        description: Type.String(),
        default: Type.String(),
        is_secret: Type.Boolean(),
        file: Type.Optional(
          Type.Object({ path: Type.String(), enable_interpolation: Type.Boolean({ default: false }) }),
        ),
      }),
    ),
    dockerfile: Type.String(),
  }),
);

const templatesOf = ({ settings }: Context) => templatesFor(outputPathOf(settings.builtInVariablePrefix));

/** Endpoints of the templates of lifecycle jobs. The content of a template goes into the body that creates a job. */
export const lifecycleTemplateRoutes: Route[] = [
  defineRoute({
    id: 'listEnvironmentLifecycleTemplates',
    method: 'GET',
    path: '/environment/{environmentId}/lifecycleTemplate',
    tag: 'Lifecycle Template Main Calls',
    summary: 'List the templates of lifecycle jobs',
    description: 'Answers templates that come with this release; none of them belongs to the environment.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: PlainListOf(LifecycleTemplateSummary) },
    readsOnlyTarget: true,
    handler: (call) => ({ results: templatesOf(call) }),
  }),
  defineRoute({
    id: 'getEnvironmentLifecycleTemplate',
    method: 'GET',
    path: '/environment/{environmentId}/lifecycleTemplate/{lifecycleTemplateId}',
    tag: 'Lifecycle Template Main Calls',
    summary: 'Get a template of a lifecycle job',
    description:
      'Answers the Dockerfile, the commands of each event and the variables that go into the body of a new job.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: LifecycleTemplate },
    readsOnlyTarget: true,
    handler: (call) => {
      const template = templatesOf(call).find(({ id }) => id === call.params.lifecycleTemplateId);
      if (!template) throw notFound('Lifecycle template');
      return template;
    },
  }),
];
