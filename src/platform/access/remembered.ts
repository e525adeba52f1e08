import { LruMap } from 'toad-cache';
import type { Principal } from '#platform/access/principal.ts';
import { checkToken, type KnownToken } from '#platform/access/tokens.ts';
import { sql } from '#platform/database/index.ts';

const LIMIT = 5_000;

/** Caller behind an API token, as read some time ago. */
export interface Remembered {
  principal: Principal;
  /** Value of `access_version` of `principal.userId` for which the rights hold (migrations/0077_access_version.sql). */
  accessVersion: string;
}

/** Remembered callers of a process. They are a guess: a request reads the present access version before it acts on one. */
export class CallerMemory {
  readonly #tokens = new LruMap<KnownToken>(LIMIT);

  /** Returns the caller of a token as last read, after checking the token's secret and its end. */
  find(token: string, now: Date): Remembered | undefined {
    const checked = checkToken(token, (id) => this.#tokens.get(id), now);
    return checked?.accessVersion ? { principal: checked.principal, accessVersion: checked.accessVersion } : undefined;
  }

  keep(token: KnownToken): void {
    this.#tokens.set(token.principal.id, token);
  }
}

/** Returns the present access version of a person, as a column of the statement that loads the target. */
export const accessVersionOf = (userId: string | null) =>
  sql<string | null>`(select version from access_version where user_id = ${userId})`;
