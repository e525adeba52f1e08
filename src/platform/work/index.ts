export type { Claim, ClaimRequest, Renewal, RowClaim, WorkKind, WorkReport, WorkStatus } from '#platform/work/kind.ts';
export { ClaimLost, Lease, requireHeld, WorkStopped, type StopReason } from '#platform/work/lease.ts';
export { leasedTable, renewalOf, withDate } from '#platform/work/leased-table.ts';
export { listenForWork } from '#platform/work/listen.ts';
export { WorkLoop } from '#platform/work/loop.ts';
