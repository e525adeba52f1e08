import { kindsWith } from '#kernel/kinds.ts';
import {
  DateTime,
  ListOf,
  named,
  Nullable,
  OneOf,
  PageQuery,
  PlainListOf,
  Type,
  Uuid,
  type Static,
} from '#platform/http/schema.ts';
import { SETTINGS } from '#platform/settings/schema.ts';
import { RECORD_SCOPES, VARIABLE_TYPES } from '#deployments/model/variables.ts';

const { default: standard, name } = SETTINGS.builtInVariablePrefix;
/** Rule for keys. The API document is the same for every installation, so the text names the setting instead of the prefix. */
const RESERVED_PREFIX = `Must not begin with the prefix of built-in variables, which is \`${standard}\` unless the operator sets ${name}.`;

/** docs/contributing/rules.md 32, 34; bytes of a value are counted by rules.ts. */
const Key = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[a-zA-Z_][a-zA-Z0-9_]*$',
  description: `Case sensitive, unique in its scope and parent. ${RESERVED_PREFIX}`,
});
const ImportedName = Type.String({ description: `Key of the variable, by the same rules. ${RESERVED_PREFIX}` });
const Value = Type.String({
  maxLength: 65_536,
  description: 'At most 64 KiB. May hold `{{OTHER_KEY}}`, which deployments replace.',
});
const MountPath = Type.Optional(
  Nullable(
    Type.String({ maxLength: 1000, description: 'Absolute path, beginning with /: makes a file of the value.' }),
  ),
);
const Description = Type.Optional(Nullable(Type.String({ maxLength: 255 })));
const InterpolateInFile = Type.Optional(
  Nullable(Type.Boolean({ description: 'Whether `{{OTHER_KEY}}` is replaced in a file too.' })),
);
const AccessId = Type.Optional(
  Nullable(
    Type.String({
      ...Uuid,
      description: 'The value is the name of a secret there, which is read at deployment.',
    }),
  ),
);
const KeptValue = Type.Optional(Nullable(Value));
const Scope = OneOf(RECORD_SCOPES);
const VariableTypeOf = OneOf(VARIABLE_TYPES);
const LinkedService = OneOf(kindsWith('linked'));

const said = { description: Description, enable_interpolation_in_file: InterpolateInFile };

export const VariableRequest = named(
  'EnvironmentVariableRequest',
  Type.Object({ key: Key, value: Type.Optional(Value), mount_path: MountPath, ...said }),
);

/** Change of a variable. Fields that are absent or null keep their value (docs/contributing/rules.md 31). */
export const VariableEditRequest = named(
  'EnvironmentVariableEditRequest',
  Type.Object({ key: Key, value: KeptValue, mount_path: MountPath, ...said }),
);

/** Override with a value. The service requires it, so that existing clients get its message instead of the schema's. */
export const OverrideRequest = named('OverrideRequest', Type.Object({ value: KeptValue, ...said }));

export const AliasRequest = named('AliasRequest', Type.Object({ key: Key, ...said }));

export const MainVariableRequest = named(
  'VariableRequest',
  Type.Object({
    key: Key,
    value: Value,
    mount_path: MountPath,
    is_secret: Type.Boolean(),
    variable_scope: Scope,
    variable_parent_id: Uuid,
    ...said,
    secret_manager_access_id: AccessId,
  }),
);

export const MainVariableEditRequest = named(
  'VariableEditRequest',
  Type.Object({ key: Key, value: KeptValue, mount_path: MountPath, ...said, secret_manager_access_id: AccessId }),
);

export const MainOverrideRequest = named(
  'VariableOverrideRequest',
  Type.Object({ value: KeptValue, override_scope: Scope, override_parent_id: Uuid, ...said }),
);

export const MainAliasRequest = named(
  'VariableAliasRequest',
  Type.Object({ key: Key, alias_scope: Scope, alias_parent_id: Uuid, ...said }),
);

const stamped = { id: Uuid, created_at: DateTime, updated_at: DateTime, key: Type.String() };
const placed = {
  scope: Scope,
  variable_type: VariableTypeOf,
  service_id: Type.Optional(Uuid),
  service_name: Type.Optional(Type.String()),
  service_type: Type.Optional(LinkedService),
  owned_by: Type.String(),
};
const source = { id: Uuid, key: Type.String(), mount_path: Nullable(Type.String()) };
const described = { description: Type.Optional(Type.String()), enable_interpolation_in_file: Type.Boolean() };
const SourceVariable = Type.Object({ ...source, value: Type.String(), scope: Scope, variable_type: VariableTypeOf });
const SourceSecret = Type.Object({
  ...source,
  scope: Scope,
  variable_type: VariableTypeOf,
  description: Type.String(),
  enable_interpolation_in_file: Type.Boolean(),
});
const SourceOfEither = Type.Object({
  ...source,
  value: Nullable(Type.String()),
  scope: Scope,
  variable_type: VariableTypeOf,
});

/** docs/contributing/rules.md, *Variable* */
export const EnvironmentVariable = named(
  'EnvironmentVariable',
  Type.Object({
    ...stamped,
    value: Type.String(),
    mount_path: Nullable(Type.String()),
    ...described,
    overridden_variable: Nullable(SourceVariable),
    aliased_variable: Nullable(SourceVariable),
    ...placed,
  }),
);
export const EnvironmentVariableList = ListOf(EnvironmentVariable);

/** docs/contributing/rules.md, *Secret*: never with the value. */
export const Secret = named(
  'Secret',
  Type.Object({
    ...stamped,
    mount_path: Nullable(Type.String()),
    ...described,
    overridden_secret: Nullable(SourceSecret),
    aliased_secret: Nullable(SourceSecret),
    ...placed,
  }),
);
export const SecretList = ListOf(Secret);

/** Variable or secret in the form of the paths below `/variable`. */
export const Variable = named(
  'Variable',
  Type.Object({
    ...stamped,
    value: Nullable(Type.String({ description: 'Null for secrets; the upstream name of an external secret.' })),
    mount_path: Nullable(Type.String()),
    description: Type.String(),
    enable_interpolation_in_file: Type.Boolean(),
    overridden_variable: Nullable(SourceOfEither),
    aliased_variable: Nullable(SourceOfEither),
    ...placed,
    is_secret: Type.Boolean(),
    secret_manager_access_id: Nullable(Uuid),
  }),
);
export const VariableList = ListOf(Variable);

export const VariableQuery = Type.Object({
  parent_id: Uuid,
  scope: Scope,
  is_secret: Type.Optional(Type.Boolean({ description: 'Secrets only, or variables only; both without it.' })),
  ...PageQuery.properties,
});

export const ImportRequest = named(
  'VariableImportRequest',
  Type.Object({
    overwrite: Type.Boolean({ default: false }),
    vars: Type.Array(
      Type.Object({ name: ImportedName, value: Type.String(), scope: Scope, is_secret: Type.Boolean() }),
      { maxItems: 1000 },
    ),
  }),
);
export type ImportInput = Static<typeof ImportRequest>;

export const ImportQuery = Type.Object({
  service_id: Uuid,
  service_type: OneOf(kindsWith('variables')),
});

const imported = { name: Type.String(), scope: Scope, is_secret: Type.Boolean() };

export const ImportResult = named(
  'VariableImport',
  Type.Object({
    total_variables_to_import: Type.Integer(),
    successful_imported_variables: Type.Array(
      Type.Object({ ...imported, value: Type.Optional(Type.String({ description: 'Left out of secrets.' })) }),
    ),
    failed_variables: Type.Array(
      Type.Object({ ...imported, message: Type.String({ description: 'Why it was not imported.' }) }),
    ),
  }),
);

const EffectiveVariable = named(
  'EffectiveVariable',
  Type.Object({
    key: Type.String(),
    value: Nullable(Type.String({ description: 'Null for secrets, and for what has an error.' })),
    is_secret: Type.Boolean(),
    mount_path: Nullable(Type.String()),
    error: Nullable(Type.String({ description: 'Why a deployment would fail because of it.' })),
    origin: Type.Object({
      id: Uuid,
      scope: Scope,
      variable_type: VariableTypeOf,
    }),
  }),
);
export const EffectiveVariableList = Type.Object({
  ...PlainListOf(EffectiveVariable).properties,
  warnings: Type.Array(Type.String()),
});
