import { sql, type RawBuilder } from 'kysely';

/** Severities of alert rules, the least first. */
export const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const;

/**
 * Returns the condition that a receiver with a severity takes messages of rules with another one: those that are as severe or more. The
 * severity of a receiver is free text: without one, or with a text that is none of `SEVERITIES` in any case, it takes all.
 */
export function takesSeverity(receiver: RawBuilder<unknown>, rule: RawBuilder<unknown>): RawBuilder<boolean> {
  const names = sql`array[${sql.join(SEVERITIES.map((name) => sql.lit(name)))}]`;
  return sql`array_position(${names}, ${rule}) >= coalesce(array_position(${names}, upper(btrim(${receiver}))), 0)`;
}
