import {
  diag,
  DiagLogLevel,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span as ApiSpan,
  type Tracer as ApiTracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Span, Tracer } from '#platform/telemetry/tracer.ts';

/** Milliseconds of a send with its repetitions; also the longest that an absent collector delays the end of the program. */
const SEND_TIMEOUT_MS = 3_000;

/** Creates a tracer for a collector. Only telemetry/index.ts imports it, when a collector is set. */
export function createOtlpTracer(endpoint: string, nodeId: string, log: Logger): Tracer {
  diag.setLogger(diagnosticsTo(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: SEND_TIMEOUT_MS });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'quarterdeck', 'service.instance.id': nodeId }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('quarterdeck');
  return {
    start: (name, { kind, attributes, traceparent }) => {
      const options = { kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL, attributes };
      return toSpan(tracer, tracer.startSpan(name, options, callerOf(traceparent)));
    },
    close: async () => {
      try {
        await provider.shutdown();
      } catch (error) {
        log.warn({ err: error }, 'the last traces could not be sent');
      }
    },
  };
}

function toSpan(tracer: ApiTracer, span: ApiSpan): Span {
  const inside = trace.setSpan(ROOT_CONTEXT, span);
  return {
    child: (name, attributes) => toSpan(tracer, tracer.startSpan(name, { attributes }, inside)),
    set: (attributes) => void span.setAttributes(attributes),
    fail: (message) => void span.setStatus({ code: SpanStatusCode.ERROR, message }),
    end: () => span.end(),
  };
}

/** Version ff is forbidden; later versions may append fields (W3C Trace Context, *traceparent*). */
const TRACEPARENT =
  /^(?:00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})|(?!ff|00)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?)$/;

/** Returns the context of the caller's span, or an empty one if the header is missing or not valid: then a new trace begins. */
function callerOf(traceparent: string | undefined): Context {
  const parts = TRACEPARENT.exec(traceparent ?? '')?.filter((part) => part !== undefined);
  if (!parts) return ROOT_CONTEXT;
  const caller = {
    traceId: parts[1]!,
    spanId: parts[2]!,
    traceFlags: Number.parseInt(parts[3]!, 16) & 1,
    isRemote: true,
  };
  return isSpanContextValid(caller) ? trace.setSpanContext(ROOT_CONTEXT, caller) : ROOT_CONTEXT;
}

/** Returns a logger for the library's complaints, such as a collector that does not answer. */
const diagnosticsTo = (log: Logger) => {
  const warn = (message: string) => log.warn({ telemetry: message }, 'traces');
  const ignored = () => undefined;
  return { error: warn, warn, info: ignored, debug: ignored, verbose: ignored };
};
