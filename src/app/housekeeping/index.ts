export { Collector } from '#app/housekeeping/collector.ts';
export { NodeHousekeeping } from '#app/housekeeping/node.ts';
export { RETENTION_TASKS } from '#app/housekeeping/tasks.ts';
