import { conflict } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { checkPasskey } from '#kernel/parsing/index.ts';
import type { PasskeySite } from '#platform/settings/address.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import type { NewPasskey } from '#resources/sign-in/passkeys/queries.ts';

/** Answer of `navigator.credentials.create`, as its `toJSON` writes it. */
export interface CreatedCredential {
  id: string;
  rawId: string;
  type: 'public-key';
  response: { clientDataJSON: string; attestationObject: string; transports?: string[] };
}

/** Checks the passkey that a browser has made, and returns it with the name that its person gives it. Throws 400 with what is wrong. */
export async function madePasskey(
  site: PasskeySite,
  challenge: string,
  credential: CreatedCredential,
  name: string,
): Promise<NewPasskey> {
  const made = await checkPasskey('passkey-registration', credential, { ...site, challenge });
  return {
    id: newId(),
    credential_id: Buffer.from(made.credentialId, 'base64url'),
    public_key: Buffer.from(made.publicKey, 'base64url'),
    sign_count: made.signCount,
    name,
    rp_id: site.rpId,
    transports: credential.response.transports ?? [],
    synced: made.isSynced,
  };
}

/** Runs work that stores a passkey. Throws 409 for one that is here already. */
export async function refuseKnown<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (brokenConstraint(error) === 'passkey_credential_id_key')
      throw conflict('This passkey is registered here already: sign in with it.');
    throw error;
  }
}
