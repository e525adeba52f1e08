/** Place in the order of events: all of the transactions below `xid`, and of that one those up to `id`. */
export interface Position {
  xid: bigint;
  id: number;
}

/** Below zero where `a` comes first. */
export const compare = (a: Position, b: Position): number => (a.xid === b.xid ? a.id - b.id : a.xid < b.xid ? -1 : 1);

export const positionOf = (row: { xid: string; id: number }): Position => ({ xid: BigInt(row.xid), id: row.id });

/** The token of a place, opaque to clients (`readStreamCursor` reads it). */
export const writeCursor = (line: string, { xid, id }: Position): string => `${line}.${xid}.${id}`;
