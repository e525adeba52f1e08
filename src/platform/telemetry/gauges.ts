import { Gauge, type GaugeConfiguration, type Registry } from 'prom-client';

/** Registers a gauge in place of an earlier one of its name: work in the background begins anew in the same process after a restore. */
export function renewGauge<Label extends string>(
  registry: Registry,
  gauge: Omit<GaugeConfiguration<Label>, 'registers'>,
): Gauge<Label> {
  registry.removeSingleMetric(gauge.name);
  return new Gauge({ ...gauge, registers: [registry] });
}
