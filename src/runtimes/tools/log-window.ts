import type { LogOptions } from '#runtimes/runtime.ts';

/** Part of a log: the lines at or after `from` and before `to`, as texts that compare with the times of lines. */
export interface LogWindow {
  from?: string;
  to?: string;
}

/** Returns the earliest time of wanted lines in the form of `LogLine.at`; undefined without a limit. */
export const earliestOf = ({ since }: Pick<LogOptions, 'since'>): string | undefined =>
  since === undefined ? undefined : new Date(since).toISOString();

export const isWithin = (time: string, { from, to }: LogWindow): boolean =>
  (from === undefined || time >= from) && (to === undefined || time < to);

/** Returns the later of two beginnings; undefined is the beginning of the log. */
export const later = (one: string | undefined, other: string | undefined): string | undefined =>
  (one ?? '') > (other ?? '') ? one : other;

export const isChosen = (instance: string, options: Pick<LogOptions, 'instance'>): boolean =>
  options.instance === undefined || options.instance === instance;
