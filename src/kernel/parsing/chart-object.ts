import { escalationIn, fieldsOf } from '#kernel/parsing/chart-rights.ts';
import type { ChartObject, ChartObjectOptions } from '#kernel/parsing/formats.ts';

/** Reads an object that a chart writes, in JSON, and answers what decides whether it may. */
export function inspectChartObject(text: string, { group, resource, namespace }: ChartObjectOptions): ChartObject {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it is no object');
  const object = value as Record<string, unknown>;
  const { name, annotations, labels } = fieldsOf(object['metadata']);
  return {
    name: typeof name === 'string' ? name : null,
    isHook: fieldsOf(annotations)['helm.sh/hook'] !== undefined,
    isRevision: fieldsOf(labels)['owner'] === 'helm' || String(object['type']).startsWith('helm.sh/release.'),
    foreignLabel: foreignLabelIn(object),
    escalation: escalationIn({ group, resource }, object, namespace),
  };
}

/**
 * Returns a label of an object, or of what it makes, that marks something as ours: other services would take the pods of the chart for
 * theirs. Null without one.
 */
export function foreignLabelIn(value: unknown): string | null {
  const waiting: unknown[] = [value];
  const wait = (inner: unknown) => (typeof inner === 'object' && inner !== null ? waiting.push(inner) : 0);
  while (waiting.length > 0) {
    const next = waiting.pop()!;
    if (Array.isArray(next)) {
      for (const item of next) wait(item);
      continue;
    }
    for (const [key, inner] of Object.entries(next)) {
      const found = key === 'labels' ? ourLabelIn(inner) : null;
      if (found !== null) return found;
      wait(inner);
    }
  }
  return null;
}

function ourLabelIn(labels: unknown): string | null {
  if (typeof labels !== 'object' || labels === null) return null;
  const ours = Object.entries(labels).find(
    ([label, value]) =>
      label.startsWith('quarterdeck.') || (label === 'app.kubernetes.io/managed-by' && value === 'quarterdeck'),
  );
  return ours?.[0] ?? null;
}
