import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid, type TSchema } from '#platform/http/schema.ts';
import { CloudVendor } from '#resources/cluster/index.ts';

const Uri = Type.String({ format: 'uri', maxLength: 2000 });
const Text = Nullable(Type.String());
const Bound = Nullable(Type.Integer({ format: 'int64' }));

export const BlueprintCatalogue = named(
  'BlueprintCatalog',
  Type.Object({
    version: Type.String(),
    generatedAt: DateTime,
    blueprints: Type.Array(
      Type.Object({
        name: Type.String(),
        kind: Type.String(),
        description: Type.String(),
        icon: Type.String(),
        categories: Type.Array(Type.String()),
        provider: Type.String(),
        serviceFamily: Type.String(),
        majorVersions: Type.Array(Type.Object({ serviceVersion: Type.String(), latestTag: Type.String() })),
      }),
    ),
  }),
);

export const BlueprintReadme = named(
  'BlueprintReadme',
  Type.Object({ content: Type.String(), repository_url: Type.String() }),
);

const ValueType = named(
  'BlueprintValueType',
  Type.Object({
    type: OneOf(['string', 'bool', 'number']),
    pattern: Text,
    min_length: Bound,
    max_length: Bound,
    min: Bound,
    max: Bound,
  }),
);
const Allowed = Nullable(Type.Array(Type.String()));

const Variable = Type.Object({
  kind: OneOf(['variable']),
  name: Type.String(),
  type: ValueType,
  required: Type.Boolean(),
  is_secret: Type.Boolean(),
  description: Text,
  allowed_values: Allowed,
  default_value: Text,
});
const ContextVariable = Type.Object({
  kind: OneOf(['contextVariable']),
  name: Type.String(),
  source: Text,
  value: Text,
});

const choice = { default: Text, allowed_values: Allowed, overridable: Type.Boolean() };
const Resources = Type.Object({ cpu: Text, ram: Text, storage: Text });
const Version = Type.Object({ version: Type.String(), allowed_values: Allowed });
const programme = (type: 'terraform' | 'opentofu') =>
  Type.Object({
    type: OneOf([type]),
    provider: CloudVendor,
    [type]: Version as TSchema,
    credentials: Type.Object(choice),
    backend: Type.Object({
      ...choice,
      user_provided: Type.Optional(
        Type.Object({ type: Type.String(), config: Type.Object({}, { additionalProperties: Type.String() }) }),
      ),
    }),
    timeout: Bound,
    resources: Resources,
  });
const Chart = Type.Object({
  type: OneOf(['helm']),
  chart: Type.Object({ repository: Type.String(), name: Type.String(), version: Type.String() }),
  timeout: Bound,
  resources: Resources,
});

const anyOf = (...shapes: TSchema[]) => Type.Unsafe<Record<string, unknown>>({ type: 'object', anyOf: shapes });

export const BlueprintManifest = named(
  'BlueprintManifest',
  Type.Object({
    ...PlainListOf(anyOf(Variable, ContextVariable)).properties,
    engine: Type.Optional(anyOf(programme('terraform'), programme('opentofu'), Chart)),
  }),
);

const SpecOverrides = Type.Object({
  engine_version: Type.Optional(Type.String({ maxLength: 255 })),
  credentials: Type.Optional(OneOf(['cluster', 'env'])),
  backend: Type.Optional(OneOf(['qovery', 'user_provided'])),
  timeout: Type.Optional(Type.Integer()),
  cpu: Type.Optional(Type.String({ maxLength: 255 })),
  ram: Type.Optional(Type.String({ maxLength: 255 })),
  storage: Type.Optional(Type.String({ maxLength: 255 })),
});
const identity = {
  name: Type.String({ minLength: 1, maxLength: 255 }),
  tag: Type.String({ minLength: 1, maxLength: 255 }),
  icon: Uri,
};
const value = { value: Type.String({ maxLength: 65_536 }), is_secret: Type.Optional(Type.Boolean()) };

export const BlueprintRequest = named(
  'BlueprintCreateRequest',
  Type.Object({
    ...identity,
    variables: Type.Optional(
      Type.Array(Type.Object({ name: Type.String({ maxLength: 255 }), ...value }), { maxItems: 200 }),
    ),
    spec_overrides: Type.Optional(SpecOverrides),
  }),
);
export const BlueprintUpdateRequest = named(
  'BlueprintUpdateRequest',
  Type.Object({
    ...identity,
    variables: Type.Optional(Type.Object({}, { additionalProperties: Type.Object(value), maxProperties: 200 })),
    spec_overrides: Type.Optional(Nullable(SpecOverrides)),
  }),
);

export const Blueprint = named(
  'Blueprint',
  Type.Object({ id: Uuid, catalog_url: Type.String(), tag: Type.String(), environment_id: Uuid }),
);

const typed = { name: Type.String(), type: ValueType, allowed_values: Allowed, is_secret: Type.Boolean() };
const changed = { current_default_value: Text, new_default_value: Text, current_value: Text };
export const BlueprintUpdate = named(
  'BlueprintUpdate',
  Type.Object({
    is_up_to_date: Type.Boolean(),
    current_tag: Type.String(),
    latest_tag: Type.String(),
    new_required_values: Type.Array(Type.Object(typed)),
    new_optional_values: Type.Array(Type.Object({ ...typed, default_value: Text })),
    now_required_values: Type.Array(Type.Object(typed)),
    updated_values: Type.Array(Type.Object({ ...typed, ...changed })),
    removed_values: Type.Array(Type.Object({ name: Type.String() })),
    engine_diff: Type.Object({ updated_values: Type.Array(Type.Object({ name: Type.String(), ...changed })) }),
    new_major_versions: Type.Array(Type.Object({ service_version: Type.String(), latest_tag: Type.String() })),
  }),
);
export const BlueprintPreview = named(
  'BlueprintUpdatePreview',
  Type.Object({ preview_id: Type.String(), service_type: OneOf(['HELM', 'TERRAFORM']) }),
);
export const BlueprintDeployment = named(
  'BlueprintDeployment',
  Type.Object({ deployment_id: Uuid, execution_id: Type.String() }),
);
