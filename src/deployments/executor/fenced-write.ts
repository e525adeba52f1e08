import type { OperationNodeSource, RawBuilder } from 'kysely';
import { untilDone } from '#platform/database/again.ts';
import { isDatabaseAway, sql, type Database } from '#platform/database/index.ts';
import { DatabaseAway, type Claim } from '#deployments/executor/claims.ts';
import type { Cause } from '#deployments/model/errors.ts';
import { ClaimLost } from '#platform/work/index.ts';

/** Something that can stand in a statement: a query that is not sent yet, or raw SQL. */
type Part = OperationNodeSource;

/**
 * Builder of one statement whose parts take effect together, and only while the claim holds. It takes one round trip and one commit; a
 * transaction that checks the claim first takes five, which is most of what a step costs (bench/RESULTS.md). All parts see the database as
 * it was when the statement began, and no row may be written by two of them.
 */
export class FencedWrite {
  readonly #db: Database;
  readonly #claim: Claim;
  readonly #parts: RawBuilder<unknown>[] = [];
  #deployment: Record<string, unknown> = {};
  #returning: string | undefined;

  constructor(db: Database, claim: Claim) {
    this.#db = db;
    this.#claim = claim;
  }

  /** Adds a part and answers the name under which later ones can read what it returns. */
  add(part: Part): RawBuilder<unknown> {
    const { name, text } = this.#named(part);
    this.#parts.push(text);
    return name;
  }

  /**
   * Adds a part that nothing refers to, and that is told behind those before it: PostgreSQL carries the parts out from the last to the first,
   * and event streams tell of changes in that order.
   */
  addToldBehind(part: Part): void {
    this.#parts.unshift(this.#named(part).text);
  }

  #named(part: Part) {
    const name = sql.raw(`w${this.#parts.length}`);
    return { name, text: sql`${name} as (${part as RawBuilder<unknown>})` };
  }

  /** Adds the part whose rows `send` answers. */
  addReturning(part: Part): RawBuilder<unknown> {
    const name = this.add(part);
    this.#returning = `w${this.#parts.length - 1}`;
    return name;
  }

  /** Sets columns of the deployment's own row. */
  set(columns: Record<string, unknown>): this {
    this.#deployment = { ...this.#deployment, ...columns };
    return this;
  }

  /** Sends the statement. Throws ClaimLost, and then nothing of it is written. `cancel` tells that a cancel was requested. */
  async send(): Promise<{ cancel: boolean; rows: ServiceState[] }> {
    const { deployment, token } = this.#claim;
    if (Object.keys(this.#deployment).length > 0)
      this.add(
        this.#db
          .updateTable('deployment')
          .set(this.#deployment)
          .where('organization_id', '=', deployment.organization_id)
          .where('id', '=', deployment.id)
          .where('claim_token', '=', token),
      );
    // The claim is held before the parts write: the main query comes first, and they run whether it reads them or not.
    const returned = this.#returning ? sql`(select json_agg(r) from ${sql.raw(this.#returning)} r)` : sql`null`;
    const parts = this.#parts.length > 0 ? sql`with ${sql.join(this.#parts)} ` : sql``;
    const statement = sql<{ cancel: boolean; returned: ServiceState[] | null }>`${parts}select
      hold_claim(${deployment.organization_id}::uuid, ${deployment.id}::uuid, ${token}::uuid) as cancel, ${returned} as returned`;
    const { rows } = await again(() => statement.execute(this.#db));
    return { cancel: rows[0]!.cancel, rows: rows[0]!.returned ?? [] };
  }
}

/** A service of the deployment, as the returning part of a write answers it. */
export interface ServiceState {
  service_id: string;
  name: string;
  state: string;
  error: string | null;
  error_code: string | null;
  error_step: string | null;
  error_cause: Cause | null;
}

/** Runs the work in a transaction that holds only while the claim does, for what one statement can't do. Throws ClaimLost. */
export const fenced = <T>(db: Database, claim: Claim, work: (db: Database) => Promise<T>): Promise<T> =>
  again(() =>
    db.transaction().execute(async (transaction) => {
      const { deployment, token } = claim;
      // Frozen in here it holds the row for so long at most.
      await sql`select hold_claim(${deployment.organization_id}::uuid, ${deployment.id}::uuid, ${token}::uuid),
        set_config('idle_in_transaction_session_timeout', '2s', true)`.execute(transaction);
      return work(transaction);
    }),
  );

/** Repeats work that ends in a deadlock. Throws ClaimLost or DatabaseAway where that is the cause, else the error of the work. */
export async function again<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await untilDone(work);
  } catch (error) {
    if ((error as { code?: string }).code === 'QD002') throw new ClaimLost();
    if (isDatabaseAway(error)) throw new DatabaseAway(error);
    throw error;
  }
}
