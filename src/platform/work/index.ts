export type {
  Claim,
  ClaimRequest,
  OwnRowClaim,
  Renewal,
  RowClaim,
  WorkKind,
  WorkReport,
  WorkStatus,
} from '#platform/work/kind.ts';
export { ClaimLost, Lease, requireHeld, WorkStopped, type StopReason } from '#platform/work/lease.ts';
export { idsInTurn } from '#platform/work/turns.ts';
export { dueTable } from '#platform/work/due-table.ts';
export { inSeconds, withDate, type Columns } from '#platform/work/claimed-rows.ts';
export { leasedTable, renewalOf } from '#platform/work/leased-table.ts';
export { listenForWork } from '#platform/work/listen.ts';
export { WorkLoop } from '#platform/work/loop.ts';
