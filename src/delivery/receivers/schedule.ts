/** Milliseconds between a failed call and the next one, for each call but the last (docs/contributing/rules.md 41). */
export const RETRY_SCHEDULE_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000];

/** Milliseconds that a receiver has to answer. */
export const ANSWER_MS = 10_000;

/** Milliseconds that calls under way have to end once their process stops. */
export const GRACE_MS = 2_000;

/** Hours after which waiting calls are given up; longer than all calls of the schedule take. */
export const EXPIRY_HOURS = 24;

/** Days for which ended calls are kept. */
export const KEPT_DAYS = 30;
