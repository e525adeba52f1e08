export { Collector } from '#housekeeping/collector.ts';
export { NodeHousekeeping } from '#housekeeping/node.ts';
export { RETENTION_TASKS } from '#housekeeping/tasks.ts';
export { keepOlderTombstones } from '#housekeeping/tombstones.ts';
