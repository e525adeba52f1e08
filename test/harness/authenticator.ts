import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** Values of CBOR that attestations have. */
type Cbor = number | string | Buffer | Cbor[] | Map<string | number, Cbor>;

/** Encodes a value as CBOR (RFC 8949 §3.1). */
function encode(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encode)]);
  const entries = [...value].flatMap(([key, one]) => [encode(key), encode(one)]);
  return Buffer.concat([head(5, value.size), ...entries]);
}

function head(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length]);
  if (length < 256) return Buffer.from([(major << 5) | 24, length]);
  return Buffer.from([(major << 5) | 25, length >> 8, length & 0xff]);
}

/** Deviations from what an honest browser and authenticator answer. */
export interface Deviation {
  origin?: string;
  challenge?: string;
  rpId?: string;
  type?: string;
  /** False if the person was not verified, by PIN or finger. */
  isVerified?: boolean;
  /** Count of signatures that is named. */
  count?: number;
  userHandle?: string | null;
  /** Attestation that is sent: format and statement. */
  attestation?: [format: string, statement: Map<string | number, Cbor>];
  /** Id of the new passkey. */
  id?: Buffer;
  /** True if the new passkey signs its own attestation. */
  isSelfAttested?: boolean;
  /** True if the signature is that of another key. */
  isForged?: boolean;
}

interface Credential {
  id: Buffer;
  key: KeyObject;
  userHandle: string;
  rpId: string;
  count: number;
}

const PRESENT = 0x01;
const VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

const sha256 = (data: Buffer | string): Buffer => createHash('sha256').update(data).digest();
const text = (data: Buffer): string => data.toString('base64url');
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Browser with an authenticator in software, which keeps passkeys of ES256. With `counts` it counts its signatures. */
export class SoftAuthenticator {
  readonly #origin: string;
  readonly #counts: boolean;
  readonly credentials: Credential[] = [];

  constructor(origin: string, { counts = false } = {}) {
    this.#origin = origin;
    this.#counts = counts;
  }

  /** Makes a passkey; returns `toJSON()` of the browser's answer. */
  create(options: { challenge: string; rp: { id: string }; user: { id: string } }, deviation: Deviation = {}) {
    const { publicKey, privateKey } = newKey();
    const { x, y } = publicKey.export({ format: 'jwk' });
    const id = deviation.id ?? randomBytes(16);
    const rpId = deviation.rpId ?? options.rp.id;
    this.credentials.push({ id, key: privateKey, userHandle: options.user.id, rpId, count: 0 });
    // COSE_Key of an EC2 key with ES256 (RFC 9053 §7.1.1).
    const cose = new Map<string | number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x!, 'base64url')],
      [-3, Buffer.from(y!, 'base64url')],
    ]);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(id.length);
    const attested = Buffer.concat([Buffer.alloc(16), length, id, encode(cose)]);
    const head = this.#head(rpId, deviation, HAS_CREDENTIAL, deviation.count ?? 0);
    const data = Buffer.concat([head, attested]);
    const client = this.#clientData('webauthn.create', options.challenge, deviation);
    const own = (): [string, Map<string | number, Cbor>] => [
      'packed',
      new Map<string | number, Cbor>([
        ['alg', -7],
        ['sig', sign('sha256', Buffer.concat([data, sha256(client)]), privateKey)],
      ]),
    ];
    const [format, statement] = deviation.isSelfAttested ? own() : (deviation.attestation ?? ['none', new Map()]);
    const object = new Map<string | number, Cbor>([
      ['fmt', format],
      ['attStmt', statement],
      ['authData', data],
    ]);
    const attestationObject = text(encode(object));
    const clientDataJSON = text(client);
    return this.#credential(id, { clientDataJSON, attestationObject, transports: ['internal'] });
  }

  /** Signs with a passkey, the last one without; returns `toJSON()` of the browser's answer. */
  get(options: { challenge: string; rpId: string }, deviation: Deviation = {}, credential = this.credentials.at(-1)!) {
    if (this.#counts) credential.count++;
    const head = this.#head(deviation.rpId ?? options.rpId, deviation, 0, deviation.count ?? credential.count);
    const client = this.#clientData('webauthn.get', options.challenge, deviation);
    const key = deviation.isForged ? newKey().privateKey : credential.key;
    const signature = sign('sha256', Buffer.concat([head, sha256(client)]), key);
    const userHandle = deviation.userHandle === undefined ? credential.userHandle : deviation.userHandle;
    return this.#credential(credential.id, {
      clientDataJSON: text(client),
      authenticatorData: text(head),
      signature: text(signature),
      userHandle,
    });
  }

  #head(rpId: string, { isVerified = true }: Deviation, flags: number, count: number): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(count);
    return Buffer.concat([sha256(rpId), Buffer.from([PRESENT | (isVerified ? VERIFIED : 0) | flags]), counter]);
  }

  #clientData(type: string, challenge: string, deviation: Deviation): Buffer {
    const origin = deviation.origin ?? this.#origin;
    const data = { type: deviation.type ?? type, challenge: deviation.challenge ?? challenge, origin };
    return Buffer.from(JSON.stringify({ ...data, crossOrigin: false }));
  }

  #credential<R>(id: Buffer, response: R) {
    return { id: text(id), rawId: text(id), type: 'public-key' as const, response };
  }
}
