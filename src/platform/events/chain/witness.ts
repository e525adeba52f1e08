import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { writeAtomically } from '#kernel/private-files.ts';

/** Size in bytes from which the file is written anew, with one line for each organization. */
const COMPACT_BYTES = 4 * 1024 * 1024;

/** End of a chain. */
export interface Head {
  organizationId: string;
  sequence: number;
  hash: Buffer;
}

/** End of a chain as this machine saw it, under the epoch of the installation. */
export interface Noted extends Head {
  epoch: number;
}

/**
 * File in the data directory with the ends of the chains that this machine sealed. An intruder with write access to the database can
 * restore an older state of every table, but not of this file.
 */
export class Witness {
  readonly #file: string;
  readonly #installation: { epoch: number };

  /** `installation`: its epoch may rise meanwhile. */
  constructor(dataDir: string, installation: { epoch: number }) {
    this.#file = fileOf(dataDir);
    this.#installation = installation;
    mkdirSync(path.dirname(this.#file), { recursive: true });
  }

  note(heads: Head[]): void {
    if (heads.length === 0) return;
    appendFileSync(this.#file, heads.map((head) => lineOf({ ...head, epoch: this.#installation.epoch })).join(''), {
      mode: 0o600,
    });
    if (statSync(this.#file).size > COMPACT_BYTES) this.#compact();
  }

  #compact(): void {
    writeAtomically(this.#file, parse(this.#file).map(lineOf).join(''));
  }
}

const fileOf = (dataDir: string): string => path.join(dataDir, 'audit-heads');

const lineOf = ({ organizationId, epoch, sequence, hash }: Noted): string =>
  `${organizationId} ${epoch} ${sequence} ${hash.toString('hex')}\n`;

/** Reads the last noted end of each organization's chain. */
export const readWitness = (dataDir: string): Noted[] => (existsSync(fileOf(dataDir)) ? parse(fileOf(dataDir)) : []);

/** Returns the last line of each organization; a line that a kill broke off is left out. */
function parse(file: string): Noted[] {
  const lines = readFileSync(file, 'utf8').matchAll(/^([0-9a-f-]{36}) (\d+) (\d+) ([0-9a-f]{64})\n/gm);
  const noted = new Map<string, Noted>();
  for (const [, organizationId, epoch, sequence, hash] of lines)
    noted.set(organizationId!, {
      organizationId: organizationId!,
      epoch: Number(epoch),
      sequence: Number(sequence),
      hash: Buffer.from(hash!, 'hex'),
    });
  return [...noted.values()];
}
