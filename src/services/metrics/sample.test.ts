import { describe, expect, test } from 'vitest';
import type { InstanceMetrics, InstanceObservation, Observation } from '#runtimes/runtime.ts';
import { CpuReadings, sampleOf } from '#services/metrics/sample.ts';

const STARTED = '2026-03-01T10:00:00.000Z';

const metricsOf = (changes: Partial<InstanceMetrics> = {}): InstanceMetrics => ({
  instance: 'a-1-1',
  cpuMilli: 100,
  memoryBytes: 1000,
  cpuLimitMilli: 500,
  memoryLimitBytes: 4000,
  startedAt: STARTED,
  restarts: 0,
  at: '2026-03-01T10:01:00.000Z',
  ...changes,
});

const observationOf = (...instances: Partial<InstanceObservation>[]): Observation => ({
  state: 'running',
  generation: 1,
  message: '',
  instances: instances.map((one, at) => ({
    name: `a-1-${at + 1}`,
    state: 'ready',
    restarts: 0,
    startedAt: STARTED,
    lastExit: null,
    ...one,
  })),
});

describe('a sample', () => {
  test('sums up all instances, and counts those that run', () => {
    const observation = observationOf({ restarts: 2 }, { state: 'restarting', restarts: 5 }, { state: 'starting' });
    const all = [metricsOf(), metricsOf({ instance: 'a-1-2', cpuMilli: 50, memoryBytes: 500 })];
    expect(sampleOf('s', observation, all, new CpuReadings())).toEqual({
      serviceId: 's',
      instances: 2,
      restarts: 7,
      use: { cpuMilli: 150, cpuLimitMilli: 1000, memoryBytes: 1500, memoryLimitBytes: 8000 },
    });
  });

  test('has no limit where one of the instances has none', () => {
    const all = [metricsOf(), metricsOf({ cpuLimitMilli: 0 })];
    expect(sampleOf('s', observationOf({}, {}), all, new CpuReadings()).use).toMatchObject({
      cpuLimitMilli: 0,
      memoryLimitBytes: 8000,
    });
  });

  test.each([[null], [[]]])('has no use where none is measured: %j', (metrics) => {
    expect(sampleOf('s', observationOf({ restarts: 1 }), metrics, new CpuReadings())).toEqual({
      serviceId: 's',
      instances: 1,
      restarts: 1,
      use: null,
    });
  });
});

describe('the CPU of an instance', () => {
  const later = (cpuMs: number, changes: Partial<InstanceMetrics> = {}) =>
    metricsOf({ cpuMs, at: '2026-03-01T10:02:00.000Z', ...changes });

  /** Reads one measurement, then another one in the next look. */
  const readAfter = (first: InstanceMetrics, second: InstanceMetrics): number => {
    const readings = new CpuReadings();
    readings.since(first);
    readings.turn();
    return readings.since(second);
  };

  test('is the mean since the last look', () => {
    expect(readAfter(metricsOf({ cpuMs: 6_000 }), later(36_000))).toBe(500);
  });

  test.each([
    ['began anew', later(36_000, { startedAt: '2026-03-01T10:01:30.000Z' })],
    ['used less, as when one of its processes ended', later(5_000)],
    ['was measured a moment ago', later(36_000, { at: '2026-03-01T10:01:00.500Z' })],
    ['tells no time', metricsOf()],
    ['is another one', later(36_000, { instance: 'a-1-2' })],
  ])('is that of the moment where the instance %s', (_why, second) => {
    expect(readAfter(metricsOf({ cpuMs: 6_000 }), second)).toBe(100);
  });

  test('is not read from a look before the last', () => {
    const readings = new CpuReadings();
    readings.since(metricsOf({ cpuMs: 6_000 }));
    readings.turn();
    readings.turn();
    expect(readings.since(later(36_000))).toBe(100);
  });
});
