/** Place in the order of events: all of the transactions below `xid`, and of that one those up to `id`. */
export interface Position {
  xid: bigint;
  id: number;
}

/** Compares two positions; the result is negative if `a` comes first. */
export const compare = (a: Position, b: Position): number => (a.xid === b.xid ? a.id - b.id : a.xid < b.xid ? -1 : 1);

export const positionOf = (row: { xid: string; id: number }): Position => ({ xid: BigInt(row.xid), id: row.id });

/** Returns the cursor of a position, opaque to clients (`readStreamCursor` reads it). */
export const writeCursor = (line: string, { xid, id }: Position): string => `${line}.${xid}.${id}`;
