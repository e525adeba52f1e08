import type { Action } from '#platform/access/actions.ts';
import type { TargetColumns } from '#resources/alert-rule/index.ts';

/** Service, or other thing, that fulfils a condition. Action and location decide the right to see it. */
export interface Finding extends TargetColumns {
  subject_id: string;
  /** Action that the maker of the rule must be allowed to do, to be told of it. */
  reads: Action;
  name: string;
  /** Null where nothing is known: what the condition is read from has been removed. */
  holds: boolean | null;
  /** Sentence part about what was found; null where nothing is known. */
  detail: string | null;
  /** Part of it that fulfils the condition, such as one of its domains; null where that is the whole. */
  part: string | null;
  /** Start of the condition, or the latest event that fulfils it; null where nothing is known. */
  since: Date | null;
}
