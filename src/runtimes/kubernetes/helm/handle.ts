import type { ChartSpec, Handle } from '#runtimes/runtime.ts';

/** Returns a handle of a chart. */
export const chartHandle = ({ identity, hostname }: Pick<ChartSpec, 'identity' | 'hostname'>): Handle => ({
  format: 1,
  runtime: 'kubernetes',
  identity,
  data: { hostname, type: 'helm' },
});

export const isChart = ({ data }: Handle): boolean => data['type'] === 'helm';
