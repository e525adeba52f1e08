import { openAsBlob } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { S3mini } from 's3mini';
import { openNew } from '#kernel/private-files.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Copy as it lies in the store. */
export interface StoredCopy {
  /** `<id of the installation>/<time>.backup.age`, below the folder of the settings. */
  name: string;
  installationId: string;
  /** Time at which the database was as the copy has it. */
  takenAt: Date;
  /** Size of the encrypted file. */
  bytes: number;
}

/** Upload in parts that has not ended, as stores list it. */
interface Upload {
  Key: string;
  UploadId: string;
  /** Time of its beginning in ISO 8601. */
  Initiated: string;
}

interface UploadList {
  ListMultipartUploadsResult?: { Upload?: Upload | Upload[] };
}

/** Error of a store that refused something or did not answer; the message says what to look at. */
class StoreError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StoreError';
  }
}

export type StoreSettings = Pick<
  Settings,
  'copiesUrl' | 'copiesFolder' | 'copiesRegion' | 'copiesAccessKeyId' | 'copiesSecretAccessKey'
>;

/** Bytes of a part of an upload: an object has at most 10,000 parts, and four are under way at a time. */
const PART_BYTES = 16 * 1024 * 1024;
/** Milliseconds that any request but a download may take; a download may be silent for as long as Node.js lets it, which is 5 minutes. */
const REQUEST_MS = 600_000;

/** Bucket of an S3-compatible store, in which the copies of installations lie. */
export class CopyStore {
  readonly #s3: S3mini;
  readonly #folder: string;
  readonly #where: string;

  private constructor(s3: S3mini, folder: string, where: string) {
    this.#s3 = s3;
    this.#folder = folder;
    this.#where = where;
  }

  /** Opens the store of the settings, which `requireStore` has found complete. `signal` ends whatever is asked. */
  static async open(settings: StoreSettings, signal: AbortSignal): Promise<CopyStore> {
    const { S3mini } = await import('s3mini');
    const limited = (url: RequestInfo | URL, init?: RequestInit) =>
      fetch(url, {
        ...init,
        // Its names and keys are for this address alone.
        redirect: 'error',
        signal: init?.method === 'GET' ? signal : anySignal([signal, AbortSignal.timeout(REQUEST_MS)]),
      });
    const s3 = new S3mini({
      endpoint: settings.copiesUrl,
      region: settings.copiesRegion,
      accessKeyId: settings.copiesAccessKeyId,
      secretAccessKey: settings.copiesSecretAccessKey,
      minPartSize: PART_BYTES,
      fetch: limited as typeof fetch,
    });
    return new CopyStore(s3, settings.copiesFolder, settings.copiesUrl);
  }

  /** Returns the copies of all installations, the newest first. What else lies there is left out. */
  async list(): Promise<StoredCopy[]> {
    const objects = await this.#ask('be listed', () => this.#s3.listObjects('/', `${this.#folder}/`));
    if (!objects)
      throw new StoreError(
        `There is no bucket at ${this.#where} for this account: make it, or mend QUARTERDECK_COPIES_URL or QUARTERDECK_COPIES_ACCESS_KEY_ID.`,
      );
    return objects
      .flatMap(({ Key, Size }) => readName(Key.slice(this.#folder.length + 1), Number(Size)))
      .sort((a, b) => b.takenAt.getTime() - a.takenAt.getTime());
  }

  /** Sends a file, and looks whether all of it has arrived. */
  async put(name: string, file: string): Promise<void> {
    const content = await openAsBlob(file);
    await this.#ask('be written to', () => this.#s3.putAnyObject(this.#key(name), content));
    const arrived = await this.#ask('be read', () => this.#s3.getContentLength(this.#key(name)));
    if (arrived !== content.size)
      throw new StoreError(`The store at ${this.#where} has ${arrived} bytes of ${content.size} of ${name}.`);
  }

  /** Writes a copy into a file, which must not be there yet. */
  async fetch(name: string, file: string): Promise<void> {
    await this.#ask('be read', async () => {
      const answer = await this.#s3.getObjectResponse(this.#key(name));
      if (!answer?.body) throw new StoreError(`There is no copy ${name} in the store at ${this.#where}.`);
      await pipeline(Readable.fromWeb(answer.body as never), openNew(file));
    });
  }

  async remove(name: string): Promise<void> {
    await this.#ask('be cleaned up', () => this.#s3.deleteObject(this.#key(name)));
  }

  /**
   * Ends uploads of an installation that began before a time: their processes were killed, and stores keep what has arrived. Returns their
   * number; there may be more than the thousand that a store lists.
   */
  async endAbandonedUploads(installationId: string, before: Date): Promise<number> {
    const prefix = `${this.#key(installationId)}/`;
    const listed = await this.#ask('be cleaned up', () =>
      this.#s3.listMultipartUploads('/', '', 'GET', { prefix }).catch(noneIfUnknown),
    );
    const { Upload: uploads = [] } = (listed as unknown as UploadList).ListMultipartUploadsResult ?? {};
    const abandoned = [uploads]
      .flat()
      .filter(({ Key, Initiated }) => Key.startsWith(prefix) && Date.parse(Initiated) < before.getTime());
    for (const { Key, UploadId } of abandoned)
      await this.#ask('be cleaned up', () => this.#s3.abortMultipartUpload(Key, UploadId));
    return abandoned.length;
  }

  #key(name: string): string {
    return `${this.#folder}/${name}`;
  }

  async #ask<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof StoreError) throw error;
      throw new StoreError(`The store at ${this.#where} cannot ${what}: ${reasonOf(error as Failure)}.`, error);
    }
  }
}

/** Statuses of stores that list no uploads, and of accounts that may not list them: a rule of the bucket may end them. */
const UNKNOWN_STATUSES: readonly (number | undefined)[] = [403, 405, 501];

function noneIfUnknown(error: unknown): UploadList {
  if (UNKNOWN_STATUSES.includes((error as Failure).status)) return {};
  throw error;
}

type Failure = Error & { status?: number; serviceCode?: string; cause?: NodeJS.ErrnoException };

/** Returns why a request failed, without what the store wrote into its answer besides a code. */
function reasonOf({ status, serviceCode, message, cause }: Failure): string {
  if (status === undefined) return cause?.code ?? cause?.message ?? message;
  const code = serviceCode !== 'Unknown' && /^[A-Za-z]{1,60}$/.test(serviceCode ?? '') ? `, ${serviceCode}` : '';
  return `it answered ${status}${code}${status === 403 ? ' (look at QUARTERDECK_COPIES_ACCESS_KEY_ID and its secret)' : ''}`;
}

const NAME = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup\.age$/;

/** Returns the name of a copy. Times are whole seconds, so that names sort by them. */
export const nameOfCopy = (installationId: string, takenAt: Date): string =>
  `${installationId}/${takenAt.toISOString().replaceAll(/[-:]|\.\d+/g, '')}.backup.age`;

function readName(name: string, bytes: number): StoredCopy[] {
  const [, installationId, ...parts] = NAME.exec(name) ?? [];
  if (installationId === undefined) return [];
  const [year, month, day, hour, minute, second] = parts;
  const takenAt = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(takenAt.getTime()) ? [] : [{ name, installationId, takenAt, bytes }];
}
