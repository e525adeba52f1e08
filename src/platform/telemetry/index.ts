import type { Logger } from 'pino';
import type { Span, Tracer } from '#platform/telemetry/tracer.ts';

export type { Span, Tracer } from '#platform/telemetry/tracer.ts';

const noSpan: Span = {
  child: () => noSpan,
  set: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

/** Makes no traces. */
export const noTracer: Tracer = { start: () => noSpan, close: () => Promise.resolve() };

/**
 * Sends traces to the collector (`otlpEndpoint`; OTLP as JSON over HTTP). The libraries are loaded only then: without a collector they
 * cost neither time at the start nor memory.
 */
export async function createTracer(endpoint: string, nodeId: string, log: Logger): Promise<Tracer> {
  if (endpoint === '') return noTracer;
  const { createOtlpTracer } = await import('#platform/telemetry/otlp.ts');
  return createOtlpTracer(endpoint, nodeId, log);
}
