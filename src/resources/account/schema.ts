import { DateTime, named, Type, Uuid } from '#platform/http/schema.ts';

export const AccountInfo = named(
  'AccountInfo',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    nickname: Type.String(),
    first_name: Type.String(),
    last_name: Type.String(),
    profile_picture_url: Type.String(),
    communication_email: Type.String(),
  }),
);

export const AccountInfoEditRequest = named(
  'AccountInfoEditRequest',
  Type.Object({ communication_email: Type.Optional(Type.String({ format: 'email', maxLength: 320 })) }),
);
