import { READS_TEXTS } from '#platform/http/texts.ts';
import { named, Nullable, Type, type Static } from '#platform/http/schema.ts';
import { settingsOf } from '#services/capabilities/service/advanced-settings/settings.ts';
import type { Kind } from '#services/kind.ts';

/** Answer: every setting of the kind. */
export const advancedSettingsSchema = (kind: Kind) =>
  named(
    `${kind.tag}AdvancedSettings`,
    Type.Object(
      Object.fromEntries(
        settingsOf(kind.kind).map(([key, { schema, description }]) => [key, { ...schema, description }]),
      ),
    ),
  );

/** Request: any of them; what is absent or null falls back to its default. */
export const advancedSettingsRequest = (kind: Kind) =>
  named(
    `${kind.tag}AdvancedSettingsRequest`,
    Type.Object(
      Object.fromEntries(
        settingsOf(kind.kind).map(([key, { schema, default: fallback, description }]) => [
          key,
          Type.Optional({ ...Nullable(schema), default: fallback, description }),
        ]),
      ),
      // What no setting is called stays in, so that it is refused by its name.
      { ...READS_TEXTS, additionalProperties: true },
    ),
  );

const sticky = Type.Optional(Type.Boolean({ description: 'Whether requests of one client go to one instance.' }));

export const NetworkRequest = named('NetworkRequest', Type.Object({ sticky_session: sticky }));
export type NetworkInput = Static<typeof NetworkRequest>;

export const Network = named('Network', Type.Object({ sticky_session: Type.Boolean() }));
