import { DateTime, Nullable, OneOf, Reference, Type, Uuid } from '#platform/http/schema.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';

/** Fields that bodies of the kinds share, besides the name. */
export const commonInput = {
  description: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))),
  icon_uri: Type.Optional(Type.String({ minLength: 1, maxLength: 2000 })),
};

/** Fields of the answer of every service, also of a read-only kind. `toServiceView` makes them. */
export const shownAnswer = {
  id: Uuid,
  created_at: DateTime,
  updated_at: DateTime,
  name: Type.String(),
  environment: Reference,
  icon_uri: Type.String(),
  service_type: OneOf(SERVICE_KINDS),
};

/** Fields of the answer of a service that can be created here. */
export const commonAnswer = { ...shownAnswer, description: Type.String() };
