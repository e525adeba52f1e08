import type { ChartSpec, WorkloadSpec } from '#runtimes/runtime.ts';

/** Returns a workload of one instance that stands for a chart, named by it. */
export const pretendChart = (chart: ChartSpec): WorkloadSpec => ({
  type: 'workload',
  identity: chart.identity,
  displayName: chart.displayName,
  hostname: chart.hostname,
  image: chart.title,
  registry: null,
  entrypoint: [],
  arguments: chart.arguments,
  environment: {},
  files: chart.values.map(({ name, content }) => ({ path: `/values/${name}`, content })),
  ports: chart.ports.map(({ id, internalPort, protocol, service }) => ({
    id,
    name: typeof service === 'string' ? service : `p${internalPort}`,
    internalPort,
    externalPort: internalPort,
    protocol,
    publiclyAccessible: true,
    isDefault: false,
  })),
  readiness: null,
  liveness: null,
  resources: { cpuMilli: 100, memoryMib: 64 },
  instances: { min: 1, max: 1 },
  storage: [],
  routes: chart.routes,
  labels: {},
  readyTimeoutSeconds: chart.timeoutSeconds,
  gracePeriodSeconds: 0,
  secrets: chart.secrets,
});
