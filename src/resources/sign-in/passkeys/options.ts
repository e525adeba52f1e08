import { PASSKEY_ALGORITHMS } from '#kernel/parsing/formats.ts';
import type { PasskeySite } from '#platform/settings/address.ts';
import { VALID_MS } from '#resources/sign-in/passkeys/challenge.ts';

/** Returns the id of a person as authenticators keep it: base64url of its bytes, which name nothing. */
export const userHandle = (userId: string): string =>
  Buffer.from(userId.replaceAll('-', ''), 'hex').toString('base64url');

interface NewPasskeyFor {
  userId: string;
  /** Name to sign in with, which authenticators show. */
  name: string;
  challenge: string;
  /** Passkeys that the person has: their authenticators make no second one. */
  present: { credential_id: Buffer; transports: string[] }[];
}

/** Returns what a page passes to `navigator.credentials.create` (Web Authentication Level 3 §5.1.8). */
export const creationOptions = ({ rpId }: PasskeySite, { userId, name, challenge, present }: NewPasskeyFor) => ({
  rp: { id: rpId, name: 'Quarterdeck' },
  user: { id: userHandle(userId), name, displayName: name },
  challenge,
  pubKeyCredParams: PASSKEY_ALGORITHMS.map((alg) => ({ type: 'public-key' as const, alg })),
  timeout: VALID_MS,
  excludeCredentials: present.map(({ credential_id: id, transports }) => ({
    type: 'public-key' as const,
    id: id.toString('base64url'),
    transports,
  })),
  authenticatorSelection: {
    residentKey: 'required' as const,
    requireResidentKey: true,
    userVerification: 'required' as const,
  },
  attestation: 'none' as const,
});

/** Returns what a page passes to `navigator.credentials.get`. It names no passkey, so that it tells nothing of people. */
export const requestOptions = ({ rpId }: PasskeySite, challenge: string) => ({
  challenge,
  timeout: VALID_MS,
  rpId,
  userVerification: 'required' as const,
});
