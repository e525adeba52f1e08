import { ListOf, named, Nullable, OneOf, Type, Uuid, type TSchema } from '#platform/http/schema.ts';
import { CLOUDS } from '#resources/cluster/index.ts';

export const ClusterMode = OneOf(['QOVERY_MANAGED', 'CUSTOMER_MANAGED']);
export const PlatformProvider = OneOf([...CLOUDS, 'UNKNOWN']);

const Text = Nullable(Type.String());
const Bound = Nullable(Type.Integer({ format: 'int64' }));

const fieldProperties = {
  key: Type.String(),
  type: OneOf(['string', 'number', 'bool']),
  required: Type.Boolean(),
  defaultValue: Text,
  label: Type.String(),
  description: Text,
  sensitive: Type.Boolean(),
  constraints: Type.Object({
    allowedValues: Nullable(Type.Array(Type.String())),
    min: Bound,
    max: Bound,
    minLength: Bound,
    maxLength: Bound,
    pattern: Text,
  }),
};
const Field = named('PlatformField', Type.Object(fieldProperties));

const Component = named(
  'PlatformComponent',
  Type.Object({
    key: Type.String(),
    kind: OneOf(['HELM', 'TERRAFORM']),
    description: Text,
    fields: Type.Array(Field),
  }),
);

export const PlatformTemplateList = ListOf(
  named(
    'PlatformTemplate',
    Type.Object({
      key: Type.String(),
      version: Type.String(),
      status: OneOf(['DRAFT', 'PUBLISHED', 'DEPRECATED']),
      description: Text,
      layers: Type.Array(
        Type.Object({
          key: Type.String(),
          mandatory: Type.Boolean(),
          enabledByDefault: Type.Boolean(),
          modes: Type.Array(ClusterMode),
          providers: Nullable(Type.Array(PlatformProvider)),
          componentKeys: Type.Array(Type.String()),
          components: Type.Array(Component),
          description: Text,
        }),
      ),
    }),
  ),
);

/** Object whose keys are free. */
const Keyed = (value: TSchema) => Type.Object({}, { additionalProperties: value, maxProperties: 200 });
const Value = Type.String({ maxLength: 10_000 });
const AnyValues = Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true });

export const ResolveRequest = named(
  'PlatformComponentResolveRequest',
  Type.Object({
    profileConfig: Type.Optional(AnyValues),
    clusterInputs: Type.Optional(Keyed(Value)),
    componentOutputs: Type.Optional(Keyed(Keyed(Value))),
  }),
);

const resolved = {
  componentKey: Type.String(),
  fields: Type.Array(Field),
  requirements: Type.Array(
    Type.Object({
      ...fieldProperties,
      scope: OneOf(['PLATFORM_PROFILE', 'CLUSTER']),
      status: OneOf(['MISSING', 'READY']),
    }),
  ),
  componentBindings: Type.Array(
    Type.Object({ input: Type.String(), fromComponent: Type.String(), output: Type.String() }),
  ),
  violations: Type.Array(Type.Object({ code: Type.String(), fieldPath: Type.String(), message: Type.String() })),
};
export const TemplateComponentConfiguration = named('PlatformTemplateComponentConfiguration', Type.Object(resolved));
export const ComponentConfiguration = named(
  'PlatformComponentConfiguration',
  Type.Object({ clusterId: Uuid, ...resolved }),
);

const Key = Type.String({ minLength: 1, maxLength: 255 });
const selections = {
  layerSelections: Keyed(Type.Boolean()),
  managedConfig: Keyed(AnyValues),
  customerProvidedInputs: Keyed(Keyed(Value)),
};
export const PlatformBindingRequest = named(
  'ClusterPlatformBindingRequest',
  Type.Object({
    templateKey: Key,
    templateVersion: Key,
    layerSelections: Type.Optional(selections.layerSelections),
    managedConfig: Type.Optional(selections.managedConfig),
    customerProvidedInputs: Type.Optional(selections.customerProvidedInputs),
  }),
);
export const PlatformBinding = named(
  'ClusterPlatformBinding',
  Type.Object({
    clusterId: Uuid,
    organizationId: Uuid,
    templateKey: Type.String(),
    templateVersion: Type.String(),
    ...selections,
    layers: Type.Array(
      Type.Object({
        key: Type.String(),
        status: OneOf(['ENABLED', 'DISABLED', 'SKIPPED']),
        reason: Type.String(),
        componentKeys: Type.Array(Type.String()),
      }),
    ),
  }),
);
