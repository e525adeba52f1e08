export { refuseFullDisk } from '#housekeeping/disk-allowance.ts';
export { inspectDisk } from '#housekeeping/inspect-disk.ts';
export { Collector } from '#housekeeping/collector.ts';
export { forgetConnected, removeEverything } from '#housekeeping/everything.ts';
export { NodeHousekeeping } from '#housekeeping/node.ts';
export { RETENTION_TASKS } from '#housekeeping/tasks.ts';
export { keepOlderTombstones, type OpenTombstone } from '#housekeeping/tombstones.ts';
