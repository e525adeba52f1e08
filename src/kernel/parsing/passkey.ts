import {
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { decodeAttestationObject, isoBase64URL } from '@simplewebauthn/server/helpers';
import {
  PASSKEY_ALGORITHMS,
  type AssertionOptions,
  type CeremonyOptions,
  type MadePasskey,
} from '#kernel/parsing/formats.ts';

/** Checks the browser's answer to a request for a new passkey. Throws Error with what is wrong. */
export async function checkRegistration(text: string, ceremony: CeremonyOptions): Promise<MadePasskey> {
  const response = JSON.parse(text) as RegistrationResponseJSON;
  refuseCertificates(response.response.attestationObject);
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response,
    ...expected(ceremony),
    supportedAlgorithmIDs: [...PASSKEY_ALGORITHMS],
  });
  if (!verified || !registrationInfo) throw new Error('the signature of its attestation is wrong');
  const { credential, credentialBackedUp } = registrationInfo;
  return {
    credentialId: credential.id,
    publicKey: isoBase64URL.fromBuffer(credential.publicKey),
    signCount: credential.counter,
    isSynced: credentialBackedUp,
  };
}

/** Checks the browser's answer to a request to sign in; returns the new count of signatures. Throws Error with what is wrong. */
export async function checkAssertion(text: string, ceremony: AssertionOptions): Promise<number> {
  const response = JSON.parse(text) as AuthenticationResponseJSON;
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response,
    ...expected(ceremony),
    credential: {
      id: response.id,
      publicKey: isoBase64URL.toBuffer(ceremony.publicKey),
      counter: ceremony.signCount,
    },
  });
  if (!verified) throw new Error('the signature is wrong');
  return authenticationInfo.newCounter;
}

const expected = ({ challenge, origin, rpId }: CeremonyOptions) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: rpId,
  requireUserVerification: true,
});

/**
 * Refuses the proof of a maker with its certificates, which is not asked for and would be much to parse. Some authenticators sign with the
 * passkey itself also then (self attestation, Web Authentication Level 3 §6.5.4).
 */
function refuseCertificates(attestation: string): void {
  const decoded = decodeAttestationObject(isoBase64URL.toBuffer(attestation));
  const format = decoded.get('fmt');
  const isOwn = format === 'packed' && decoded.get('attStmt').get('x5c') === undefined;
  if (format !== 'none' && !isOwn)
    throw new Error('it has an attestation, which is not asked for: "none" is the format that is taken');
}
