import type { InstanceMetrics, Observation } from '#runtimes/runtime.ts';

/** CPU and memory of all instances of a service together. */
interface Use {
  cpuMilli: number;
  /** 0 if there is no limit. */
  cpuLimitMilli: number;
  memoryBytes: number;
  /** 0 if there is no limit. */
  memoryLimitBytes: number;
}

/** Measurement of a service. */
export interface Sample {
  serviceId: string;
  /** Instances that run, ready or not. */
  instances: number;
  /** Restarts of the present instances so far. */
  restarts: number;
  /** Null where the cluster measures no instances, or none runs. */
  use: Use | null;
}

/** CPU time that the run of an instance had used at a time. */
interface Reading {
  startedAt: string | null;
  cpuMs: number;
  /** Milliseconds since 1970. */
  at: number;
}

/** Milliseconds between two readings below which a mean says little. */
const LEAST_MS = 1_000;

/**
 * CPU times of instances at the last look. Their difference is the mean use since then, where a measurement of the moment may fall between
 * two bursts.
 */
export class CpuReadings {
  #last = new Map<string, Reading>();
  #now = new Map<string, Reading>();

  /** Returns the milli-CPU of an instance since the last look. They are those of the moment where that did not see this run. */
  since({ instance, cpuMilli, cpuMs, startedAt, at }: InstanceMetrics): number {
    if (cpuMs === undefined) return cpuMilli;
    const [last, reading] = [this.#last.get(instance), { startedAt, cpuMs, at: Date.parse(at) }];
    this.#now.set(instance, reading);
    if (!last || last.startedAt !== startedAt || reading.at - last.at < LEAST_MS) return cpuMilli;
    // The time of processes of an instance that have ended may be missing.
    return cpuMs < last.cpuMs ? cpuMilli : Math.round(((cpuMs - last.cpuMs) / (reading.at - last.at)) * 1000);
  }

  /** Ends a look: what it did not see is forgotten. */
  turn(): void {
    this.#last = this.#now;
    this.#now = new Map();
  }
}

const RUNS: ReadonlySet<string> = new Set(['starting', 'running', 'ready']);

/** Sums up the instances of a service. `metrics` is null where they cannot be measured. */
export function sampleOf(
  serviceId: string,
  { instances }: Observation,
  metrics: InstanceMetrics[] | null,
  readings: CpuReadings,
): Sample {
  const sum = (valueOf: (one: InstanceMetrics) => number) => metrics!.reduce((total, one) => total + valueOf(one), 0);
  // An instance without a limit may take all: neither has the service one then.
  const limit = (valueOf: (one: InstanceMetrics) => number) =>
    metrics!.some((one) => valueOf(one) === 0) ? 0 : sum(valueOf);
  return {
    serviceId,
    instances: instances.filter(({ state }) => RUNS.has(state)).length,
    restarts: instances.reduce((total, { restarts }) => total + restarts, 0),
    use:
      metrics === null || metrics.length === 0
        ? null
        : {
            cpuMilli: sum((one) => readings.since(one)),
            cpuLimitMilli: limit(({ cpuLimitMilli }) => cpuLimitMilli),
            memoryBytes: sum(({ memoryBytes }) => memoryBytes),
            memoryLimitBytes: limit(({ memoryLimitBytes }) => memoryLimitBytes),
          },
  };
}
