import { Name, named, Type, Uuid } from '#platform/http/schema.ts';
import type { Kind } from '#services/kind.ts';
import { commonAnswer, commonInput } from '#services/service/common-fields.ts';

interface WidgetSpec {
  colour: string;
}
interface WidgetInput {
  name: string;
  colour?: string;
}

const colour = Type.Optional(Type.String({ minLength: 1, maxLength: 20 }));

/** Kind of service that no release has: a constant image, and a colour. */
export const widget: Kind<WidgetSpec, WidgetInput> = {
  kind: 'WIDGET' as Kind['kind'],
  path: 'widget',
  tag: 'Widget',
  listTag: 'Widgets',
  defaultStage: 'CONTAINER DEFAULT',
  schemas: {
    create: named('WidgetRequest', Type.Object({ name: Name, colour, ...commonInput })),
    edit: named('WidgetEditRequest', Type.Object({ name: Type.Optional(Name), colour, ...commonInput })),
    answer: named('Widget', Type.Object({ ...commonAnswer, colour: Type.String() })),
  },
  toSpec: async (_context, _place, input, present) => ({ colour: input.colour ?? present?.colour ?? 'grey' }),
  toView: (_context, _row, spec) => ({ colour: spec.colour }),
  details: ({ colour: shown }) => ({ colour: shown }),
  deploy: { group: 'widgets', entry: Type.Object({ id: Uuid }), choose: () => ({}) },
  deployment: {
    source: () => null,
    plan: (service, action) => ({
      serviceId: service.serviceId,
      name: service.name,
      kind: service.kind,
      steps: ['DEPLOYMENT'],
      reason: `${action.toLowerCase()} was requested`,
      buildKey: null,
      image: 'widget:1',
      rollout: 'RECREATE',
    }),
    deployable: (service, identity, image, variables, { registry }) => ({
      type: 'workload',
      identity,
      displayName: service.name,
      image,
      registry,
      entrypoint: [],
      arguments: [],
      environment: variables.variables,
      files: variables.files,
      secrets: variables.secrets,
      resources: { cpuMilli: 100, memoryMib: 64 },
      storage: [],
      labels: {},
      gracePeriodSeconds: 5,
      hostname: `widget-${service.serviceId.slice(0, 8)}`,
      ports: [],
      readiness: null,
      liveness: null,
      instances: { min: 1, max: 1 },
      routes: [],
      readyTimeoutSeconds: 10,
    }),
  },
  capabilities: { ports: () => [], customDomains: { one: 'get' }, advancedSettings: {}, links: {}, clone: {} },
};
