import { createHmac, timingSafeEqual } from 'node:crypto';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Record as it stands in a ConfigMap. */
interface Written {
  namespace: string;
  /** Name of the ConfigMap, which has the id of the service. */
  name: string;
  text: string;
}

/**
 * Returns the seal of a record: HMAC-SHA-256 with the key of the cluster's records. It binds the text, which has the generation, to cluster,
 * environment and service (docs/decisions/0107-a-record-is-sealed.md).
 */
export const sealOf = (key: Buffer, { namespace, name, text }: Written): string =>
  `1.${createHmac('sha256', key)
    .update(JSON.stringify(['record', 1, namespace, name, text]))
    .digest('base64url')}`;

/** Returns whether a seal is the one of a record. */
export function isSealOf(key: Buffer, written: Written, seal: string): boolean {
  const [own, given] = [Buffer.from(sealOf(key, written)), Buffer.from(seal)];
  return own.length === given.length && timingSafeEqual(own, given);
}

/** Refusal to use a record that another program wrote or changed. */
export class AlteredRecord extends RuntimeError {
  constructor(name: string) {
    super(
      'failed',
      `The record of the service in the cluster (ConfigMap ${name}) was changed by somebody else and is not used: deploy the service again.`,
    );
  }
}
