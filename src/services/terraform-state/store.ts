import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { conflict, internal } from '#kernel/errors.ts';
import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { holderOfLock, type LockInfo } from '#services/terraform-state/lock-info.ts';
import * as queries from '#services/terraform-state/queries.ts';
import { checkState } from '#services/terraform-state/state-file.ts';

const compress = promisify(gzip);
const expand = promisify(gunzip);

/** Service whose state it is. */
export interface StateOwner {
  organizationId: string;
  serviceId: string;
}

/** Credential of a run: user name and password that Terraform gets. */
export interface RunCredential {
  user: string;
  password: string;
}

/** Parts of the platform that states need. Within a transaction all writes are part of it. */
export type StatePlatform = Pick<Platform, 'db' | 'vault'>;

/** Time in seconds beyond a run's own limit: to begin, and to record its end. */
const GRACE_SECONDS = 600;

const secretPlace = (serviceId: string): string => `terraform_state/${serviceId}/run_secret`;
const contentPlace = (serviceId: string, version: number): string => `terraform_state/${serviceId}/${version}`;
const hashOf = (password: string): Buffer => createHash('sha256').update(password).digest();

const inRow = <T>(
  { db }: StatePlatform,
  owner: StateOwner,
  work: (db: Database, row: queries.StateRow) => Promise<T>,
): Promise<T> => {
  const held = async (inside: Database) => {
    const row = await queries.lockStateRow(inside, owner, owner.serviceId);
    if (!row) throw internal(`The state of ${owner.serviceId} has no row.`);
    return work(inside, row);
  };
  return db.isTransaction ? held(db) : db.transaction().execute(held);
};

/**
 * Issues a credential for a run and revokes those of earlier runs, even if they still work. See docs/contributing/engine.md, *Outside the
 * database*. Returns the same password for the same generation: a worker that adopts a run finds it running with that password. Throws 409
 * when a later run has begun.
 */
export async function beginRun(
  platform: StatePlatform,
  owner: StateOwner,
  run: { generation: number; timeoutSeconds: number },
): Promise<RunCredential> {
  await queries.insertState(platform.db, owner, owner.serviceId);
  const seconds = run.timeoutSeconds + GRACE_SECONDS;
  const user = `run-${run.generation}`;
  return inRow(platform, owner, async (db, row) => {
    if (row.generation > run.generation) throw conflict('A later run of this service has begun.');
    if (row.generation === run.generation && row.run_secret) {
      await queries.prolongRun(db, owner, owner.serviceId, seconds);
      const password = await platform.vault.open(
        db,
        owner.organizationId,
        secretPlace(owner.serviceId),
        row.run_secret,
      );
      return { user, password };
    }
    const password = randomBytes(32).toString('base64url');
    const secret = await platform.vault.seal(db, owner.organizationId, secretPlace(owner.serviceId), password);
    await queries.openRun(db, owner, owner.serviceId, {
      generation: run.generation,
      secret,
      hash: hashOf(password),
      seconds,
    });
    return { user, password };
  });
}

/**
 * Revokes the run's credential. With `known`, its process is known to be gone: a lock that it left is released and returned. Otherwise the
 * lock stays until it is released by hand. Without a generation, the current run is meant.
 */
export async function endRun(
  platform: StatePlatform,
  owner: StateOwner,
  run: { generation: number | null; known: boolean },
): Promise<LockInfo | null> {
  await queries.insertState(platform.db, owner, owner.serviceId);
  return inRow(platform, owner, async (db, row) => {
    const generation = run.generation ?? row.generation;
    await queries.closeRun(db, owner, owner.serviceId, generation);
    if (!run.known || row.lock_id === null || row.lock_generation !== generation) return null;
    await queries.clearLock(db, owner, owner.serviceId, row.lock_id);
    return row.lock as LockInfo;
  });
}

/** Refused credential. The reason is for the log; the client does not learn it. */
export class NotLetIn extends Error {}

/** Request of Terraform. Every write checks its credential again. */
export interface StateRequest {
  owner: StateOwner;
  credential: RunCredential;
}

function letIn(row: queries.StateRow | undefined, { credential }: StateRequest): queries.StateRow {
  if (!row?.run_secret_hash || !row.is_open) throw new NotLetIn('no run is under way');
  if (!timingSafeEqual(row.run_secret_hash, hashOf(credential.password))) throw new NotLetIn('another password');
  if (credential.user !== `run-${row.generation}`) throw new NotLetIn('another run');
  return row;
}

/** Throws NotLetIn unless the credential is valid; called before a body is read. */
export async function checkCredential({ db }: StatePlatform, request: StateRequest): Promise<void> {
  letIn(await queries.findState(db, request.owner, request.owner.serviceId), request);
}

/** Returns the newest version as Terraform wrote it; null if there is none. */
export async function readState(platform: StatePlatform, request: StateRequest): Promise<Buffer | null> {
  const row = letIn(await queries.findState(platform.db, request.owner, request.owner.serviceId), request);
  return openVersion(platform, request.owner, row.version);
}

async function openVersion(platform: StatePlatform, owner: StateOwner, version: number): Promise<Buffer | null> {
  const content = await queries.readContent(platform.db, owner, owner.serviceId, version);
  if (!content) return null;
  const place = contentPlace(owner.serviceId, version);
  const text = await platform.vault.open(platform.db, owner.organizationId, place, content);
  // Decoding takes a turn of its own: with tens of megabytes each step takes some ten milliseconds.
  await nextTurn();
  return expand(Buffer.from(text, 'base64'));
}

/** Refused request because of another lock. Terraform shows its user who holds that lock. */
export class Locked extends Error {
  readonly lock: LockInfo;
  constructor(lock: LockInfo) {
    super(`The state is locked: ${holderOfLock(lock)} holds it.`);
    this.lock = lock;
  }
}

/** Writes a new version. Throws Locked if another lock is held, 409 if none is. */
export async function writeState(
  platform: StatePlatform,
  request: StateRequest,
  lockId: string | null,
  content: Buffer,
): Promise<void> {
  await checkState(request.owner.organizationId, content);
  const packed = (await compress(content)).toString('base64');
  await write(platform, request, lockId, { packed, size: content.length });
}

/** Writes that there is no state any more; earlier versions are kept like those of every write. */
export const deleteState = (platform: StatePlatform, request: StateRequest, lockId: string | null): Promise<void> =>
  write(platform, request, lockId, null);

async function write(
  platform: StatePlatform,
  request: StateRequest,
  lockId: string | null,
  content: { packed: string; size: number } | null,
): Promise<void> {
  const { owner } = request;
  await inRow(platform, owner, async (db, row) => {
    letIn(row, request);
    const lock = row.lock as LockInfo | null;
    if (lock && lock.ID !== lockId) throw new Locked(lock);
    // Terraform's own DELETE sends no lock; only the current run has a credential for it.
    if (!lock && content) throw conflict('The state is written under a lock only: run without -lock=false.');
    const number = row.version + 1;
    const sealed = content
      ? await platform.vault.seal(db, owner.organizationId, contentPlace(owner.serviceId, number), content.packed)
      : null;
    const { generation } = row;
    const inserted = await queries.insertVersion(db, owner, owner.serviceId, {
      number,
      generation,
      content: sealed,
      size: content?.size ?? 0,
    });
    if (inserted?.numInsertedOrUpdatedRows !== 1n) throw internal('A state moved under its own lock.');
    await queries.deleteOldVersions(db, owner, owner.serviceId, number);
  });
}

/** Locks the state; the same lock is granted again. Throws Locked. */
export const lockState = (platform: StatePlatform, request: StateRequest, lock: LockInfo): Promise<void> =>
  inRow(platform, request.owner, async (db, row) => {
    letIn(row, request);
    const held = row.lock as LockInfo | null;
    if (held?.ID === lock.ID) return;
    if (held) throw new Locked(held);
    await queries.setLock(db, request.owner, request.owner.serviceId, lock, row.generation);
  });

/**
 * Releases a lock; does nothing if the state is not locked. Without an id, as `force-unlock` asks, the held lock is released. Throws
 * Locked.
 */
export const unlockState = (platform: StatePlatform, request: StateRequest, lockId: string | null): Promise<void> =>
  inRow(platform, request.owner, async (db, row) => {
    letIn(row, request);
    const held = row.lock as LockInfo | null;
    if (!held) return;
    if (lockId !== null && held.ID !== lockId) throw new Locked(held);
    await queries.clearLock(db, request.owner, request.owner.serviceId, held.ID);
  });

/** Releases the lock, regardless of its holder, and returns it; null where there is none. Throws 409 for another id. */
export async function forceUnlock(
  platform: StatePlatform,
  owner: StateOwner,
  lockId: string | null,
): Promise<LockInfo | null> {
  await queries.insertState(platform.db, owner, owner.serviceId);
  return inRow(platform, owner, async (db, row) => {
    const held = row.lock as LockInfo | null;
    if (!held) return null;
    if (lockId !== null && held.ID !== lockId)
      throw conflict(`The lock ${lockId} is not held: ${holderOfLock(held)} is.`);
    await queries.clearLock(db, owner, owner.serviceId, held.ID);
    return held;
  });
}

/** Reads the newest version of a state and its lock, without a credential of a run. Null if there never was a state. */
export async function currentState(
  platform: StatePlatform,
  owner: StateOwner,
): Promise<{ content: Buffer | null; version: number; lock: LockInfo | null } | null> {
  const row = await queries.findState(platform.db, owner, owner.serviceId);
  if (!row) return null;
  const content = await openVersion(platform, owner, row.version);
  return { content, version: row.version, lock: row.lock as LockInfo | null };
}
