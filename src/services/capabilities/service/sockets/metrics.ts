import { badRequest } from '#kernel/errors.ts';
import { defineSocket, type Socket } from '#platform/sockets/index.ts';
import { serviceOfQuery } from '#services/capabilities/service/sockets/targets.ts';

/** Metrics of a service, which are not kept yet. */
export const serviceMetricsSocket: Socket = defineSocket({
  id: 'followServiceMetrics',
  path: '/service/metrics',
  summary: 'Refused with 400: metrics of services are not kept',
  frames: 'none',
  target: serviceOfQuery,
  action: 'service.read',
  open: () => {
    throw badRequest(
      'Metrics of services are not kept here: ask the monitoring of the machine that the cluster is on.',
    );
  },
});
