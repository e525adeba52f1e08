import { DateTime, named, Nullable, Type } from '#platform/http/schema.ts';

const Email = Type.String({ minLength: 3, maxLength: 320 });

export const AccountAddress = named(
  'AccountAddress',
  Type.Object({
    email: Nullable(Type.String({ description: 'Address that links for a forgotten password are mailed to.' })),
    pending: Nullable(
      Type.Object(
        { email: Type.String(), expires_at: DateTime },
        { description: 'Address that a link was mailed to, which takes the place of the other when it is used.' },
      ),
    ),
  }),
);

export const AccountAddressRequest = named('AccountAddressRequest', Type.Object({ email: Email }));
