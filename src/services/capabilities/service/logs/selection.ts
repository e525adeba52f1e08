import { invalidField } from '#kernel/errors.ts';
import { Type } from '#platform/http/schema.ts';
import type { LogLine, LogOptions } from '#runtimes/runtime.ts';

/** Newest lines that are searched for a text. */
export const SEARCHED = 10_000;

/** Query parameters of every log of a service, live ones included. */
export const SelectionQuery = {
  since: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'Only lines at or after this time: RFC 3339, such as `2026-01-31T09:00:00Z`; a `+` is written `%2B`.',
    }),
  ),
  pod_name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        'Only lines of this instance, as the lines name it, also of one that has ended if its log is kept; an unknown one has none. Refused for services that run to an end.',
    }),
  ),
  text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: `Only lines that contain this text, in upper or lower case; of those so far the newest ${SEARCHED.toLocaleString('en')} are searched.`,
    }),
  ),
};

/** Query parameters of logs that can be followed. */
export const FollowQuery = {
  follow: Type.Optional(
    Type.Boolean({
      description:
        'Sends the lines as Server-Sent Events (`text/event-stream`) and goes on with new ones, those of later deployments and runs included.',
    }),
  ),
  lastEventId: Type.Optional(
    Type.String({
      description:
        'With `follow`: what the header `Last-Event-ID` would say, for clients that cannot set it; the header wins. The log goes on after that line, and `tail` has no effect. Refused without `follow`.',
    }),
  ),
};

/** Query parameter of logs that end with their newest line. */
export const PreviousQuery = {
  previous: Type.Optional(
    Type.Boolean({
      description:
        'Only lines of the run of each instance that ended last, such as one that crashed; none of an instance that never restarted. With `pod_name` of an ended instance, its last run. Refused for services that run to an end.',
    }),
  ),
};

/** Choice among the lines of a service, by query parameters. */
export interface Selection {
  since?: string;
  pod_name?: string;
  text?: string;
  previous?: boolean;
}

export const toLogOptions = ({
  since,
  pod_name,
  previous,
}: Selection): Omit<LogOptions, 'tail' | 'follow' | 'signal'> => ({
  since,
  instance: pod_name,
  previous,
});

/** Returns the function that tells whether a line has the text of a selection. */
export function hasText({ text }: Selection): (line: string) => boolean {
  if (text === undefined) return () => true;
  const wanted = text.toLowerCase();
  return (line) => line.toLowerCase().includes(wanted);
}

/** Returns the function that tells whether a line is not before `since` and has the text. */
export function isChosen({ since, text }: Selection): (at: string, line: string) => boolean {
  const isFound = hasText({ text });
  const earliest = since === undefined ? -Infinity : Date.parse(since);
  return (at, line) => Date.parse(at) >= earliest && isFound(line);
}

/** Returns the selected lines of a removed instance. It is no previous run: those are of instances that restarted. */
export function selectKept(lines: LogLine[], selection: Selection): LogLine[] {
  const isWanted = isChosen(selection);
  if (selection.previous) return [];
  return lines.filter(
    ({ at, text, instance }) =>
      isWanted(at, text) && (selection.pod_name === undefined || selection.pod_name === instance),
  );
}

/**
 * Tells whether lines of former instances are wanted. Without a time or a name, a log is that of the present ones: it would begin with the
 * release before.
 */
export const asksForFormer = ({ since, pod_name, previous }: Selection): boolean =>
  pod_name !== undefined || (since !== undefined && !previous);

/** Throws 400 for a selection by instances in the log of a service that runs to an end. */
export function refuseInstances({ pod_name, previous }: Selection): void {
  const field = pod_name !== undefined ? 'pod_name' : previous ? 'previous' : null;
  if (field === null) return;
  throw invalidField(
    field,
    'must be left out: this service runs to an end and has executions instead of instances; GET …/execution lists them, and each has a log',
  );
}
