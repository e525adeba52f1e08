import type { TargetColumns } from '#resources/alert-rule/index.ts';

/** Service that fulfils a condition, with the location by which the right to see it is decided. */
export interface Finding extends TargetColumns {
  subject_id: string;
  name: string;
  /** Null where nothing is known: what the condition is read from has been removed. */
  holds: boolean | null;
  /** Sentence part about what was found; null where nothing is known. */
  detail: string | null;
  /** Part of the service that fulfils the condition, such as one of its domains; null where that is the service itself. */
  part: string | null;
  /** Start of the condition, or the latest event that fulfils it; null where nothing is known. */
  since: Date | null;
}
