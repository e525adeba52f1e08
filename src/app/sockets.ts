import { noRuntime } from '#runtimes/no-runtime.ts';
import { noStreams } from '#platform/events/stream.ts';
import type { Socket } from '#platform/sockets/index.ts';
import { clusterSockets } from '#resources/cluster/index.ts';
import { KINDS } from '#services/mount.ts';
import { serviceSockets, type ServiceSocketNeeds } from '#services/capabilities/service/sockets/index.ts';

const KINDS_WITH_RUNS = KINDS.filter(({ capabilities }) => capabilities?.executions).map(({ kind }) => kind);

/** Every web socket of the program. */
export const allSockets = (needs: Partial<ServiceSocketNeeds> = {}): Socket[] => [
  ...serviceSockets({ streams: noStreams, runtimeOf: noRuntime, kindsWithRuns: KINDS_WITH_RUNS, ...needs }),
  ...clusterSockets(),
];
