import { OneOf, Type, type Static } from '#platform/http/schema.ts';
import { defineSocket, SharedLooks, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { checkKind, inTime, runtimeOf, unsupported } from '#services/capabilities/service/sockets/runtime.ts';
import { serviceOfQuery } from '#services/capabilities/service/sockets/targets.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';
import { findServiceById } from '#services/service/queries.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { Handle, InstanceMetrics, Runtime } from '#runtimes/runtime.ts';

/** Milliseconds between two measurements. */
const LOOK_MS = 5_000;
const MIB = 2 ** 20;
/** Percents of a limit from which the use is `WARNING`, and `ALERT`. */
const WARNING_PERCENT = 80;
const ALERT_PERCENT = 95;

const MetricsQuery = Type.Object({
  service_type: Type.Optional(OneOf(SERVICE_KINDS, { description: 'Has to be the kind of the service.' })),
});
type MetricsCall = SocketCall<ServiceTarget, Static<typeof MetricsQuery>>;

/** CPU and memory of the instances of a service. */
export const serviceMetricsSocket = (needs: ServiceSocketNeeds): Socket => {
  const looks = new SharedLooks<string>(LOOK_MS);
  return defineSocket({
    id: 'followServiceMetrics',
    path: '/service/metrics',
    summary: `CPU and memory of each instance of a service, measured every ${LOOK_MS / 1000} seconds`,
    frames: 'text, each a list with an element for each instance that runs',
    target: serviceOfQuery,
    action: 'service.read',
    query: MetricsQuery,
    open: async (call: MetricsCall) => {
      checkKind(call);
      const { target } = call;
      const runtime = await runtimeOf(needs, target);
      if (!runtime.metrics) throw unsupported(target, 'instances cannot be measured');
      const read = () => inTime(readMetrics(call, runtime));
      return async (peer) => {
        for await (const text of looks.follow(target.id, read, peer.signal)) await peer.send(text);
      };
    },
  });
};

/** Measures the service as it is deployed by now; what is not deployed or is stopped has no instances. */
async function readMetrics({ db, target }: Pick<MetricsCall, 'db' | 'target'>, runtime: Runtime): Promise<string> {
  const row = await findServiceById(db, [target.organizationId], target.id);
  const handle = (row?.handle ?? null) as Handle | null;
  const measured = handle === null ? [] : await runtime.metrics!(handle);
  return JSON.stringify(measured.map(toView));
}

const toView = ({ instance, cpuMilli, memoryBytes, cpuLimitMilli, memoryLimitBytes }: InstanceMetrics) => ({
  pod_name: instance,
  cpu: { ...useOf(cpuMilli, cpuLimitMilli), unit: 'mCPU' },
  memory: { ...useOf(Math.round(memoryBytes / MIB), Math.round(memoryLimitBytes / MIB)), unit: 'MiB' },
  // Volumes are not measured.
  storages: [],
});

function useOf(current: number, limit: number) {
  const percent = limit > 0 ? Math.round((current / limit) * 100) : 0;
  const status = percent >= ALERT_PERCENT ? 'ALERT' : percent >= WARNING_PERCENT ? 'WARNING' : 'OK';
  return { current, current_percent: percent, limit, status };
}
