import { internal } from '#kernel/errors.ts';

/** Kinds of events that the stream carries (docs/event-stream.md). */
export const STREAM_TYPES = ['deployment', 'service-state', 'service-warning', 'step', 'audit', 'log'] as const;
export type StreamType = (typeof STREAM_TYPES)[number];

/** Filter of one stream: an organization and parts of it. */
export interface StreamFilter {
  organizationId: string;
  types: readonly StreamType[];
  projectId?: string;
  environmentId?: string;
  /** Service of the targets of audit events. Log chunks hold lines of several services and all pass. */
  serviceId?: string;
  deploymentId?: string;
}

/** Stored event with its environment as it is now, null where that is gone. */
export interface StreamRow {
  /** Number of the transaction that wrote it, in decimal digits. */
  xid: string;
  id: number;
  organization_id: string;
  at: Date;
  type: StreamType;
  project_id: string | null;
  environment_id: string | null;
  service_id: string | null;
  deployment_id: string | null;
  data: any;
  mode: string | null;
  cluster_id: string | null;
  environment_name: string | null;
  project_name: string | null;
  /** Row of an audit event, with its times as text; null if its retention is over. */
  audit: any;
}

/** Reason of missing events: their retention is over, or they belong to a database that a restore replaced. */
export type Missing = 'REMOVED' | 'RESTORED';

/** Item of a stream: an event, a note that some are missing, or (neither) only the position reached. */
export interface StreamItem {
  /** Place right after it: what a client resumes from. */
  cursor: string;
  row?: StreamRow;
  missing?: Missing;
}

/** Source of streams (delivery/stream). */
export interface EventStreams {
  /**
   * Yields events of an organization in the order of their transactions, from the cursor on (without one: from now on), until the signal
   * ends it without an error. `wants` leaves out more than the filter does. An item without an event comes first and after every pause.
   */
  open(
    filter: StreamFilter,
    cursor: string | undefined,
    wants: (row: StreamRow) => boolean,
    signal: AbortSignal,
  ): AsyncIterable<StreamItem[]>;
}

/** Source of streams for a program that serves none: its routes are only inspected. */
export const noStreams: EventStreams = {
  open: () => {
    throw internal('No event streams were given to the routes.');
  },
};

const FORM = /^([0-9a-f]{1,32})\.(\d{1,20})\.(\d{1,16})$/;

/** Returns whether the text has the form of a cursor; only its use shows whether it still leads anywhere. */
export const looksLikeCursor = (cursor: string): boolean => FORM.test(cursor);

/** Returns the parts of a cursor: line of transactions, transaction, event in it. Undefined for any other text. */
export function readStreamCursor(cursor: string): { line: string; xid: bigint; id: number } | undefined {
  const match = FORM.exec(cursor);
  return match ? { line: match[1]!, xid: BigInt(match[2]!), id: Number(match[3]) } : undefined;
}
