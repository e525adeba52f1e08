import { ListOf, named, Type } from '#platform/http/schema.ts';

const TEXT = Type.String({ maxLength: 255 });

export const EnterpriseConnection = named(
  'EnterpriseConnection',
  Type.Object({
    connection_name: TEXT,
    default_role: TEXT,
    enforce_group_sync: Type.Boolean(),
    group_mappings: Type.Object(
      {},
      { additionalProperties: Type.Array(TEXT, { maxItems: 1000 }), maxProperties: 1000 },
    ),
  }),
);
export const EnterpriseConnectionList = ListOf(EnterpriseConnection);

/** Connection as it is saved and answered. */
export interface ConnectionInput {
  connection_name: string;
  /** Name or id of the role of people in none of the groups; '' for none. */
  default_role: string;
  /** True if each sign-in replaces the role; false if only the first one gives a role. */
  enforce_group_sync: boolean;
  /** Groups by the name or id of the role that they give. */
  group_mappings: Record<string, string[]>;
}
