import { SENSITIVE, withoutSecrets } from '#kernel/parsing/terraform-content.ts';

/** Actions that a plan names for a resource or an output. */
export const PLAN_ACTIONS = ['CREATE', 'UPDATE', 'DELETE', 'REPLACE', 'READ', 'FORGET', 'NO_OP'] as const;
type PlannedAction = (typeof PLAN_ACTIONS)[number];

interface Shown {
  action: PlannedAction;
  before: unknown;
  after: unknown;
}

/** Plan as people and their tools read it. */
export interface ReadablePlan {
  summary: { create: number; update: number; replace: number; delete: number };
  changes: (Shown & {
    address: string;
    previous_address: string | null;
    mode: 'managed' | 'data';
    resource_type: string;
    name: string;
    provider: string;
    reason: string | null;
  })[];
  outputs: (Shown & { name: string })[];
}

interface RawChange {
  actions: string[];
  before: unknown;
  after: unknown;
  after_unknown?: unknown;
  before_sensitive?: unknown;
  after_sensitive?: unknown;
}

interface RawPlan {
  resource_changes?: {
    address: string;
    previous_address?: string;
    mode: string;
    type: string;
    name: string;
    provider_name: string;
    action_reason?: string;
    change: RawChange;
  }[];
  output_changes?: Record<string, RawChange>;
}

const UNKNOWN = '(known after apply)';

/**
 * Returns the readable part of what `show -json` says of a plan: what changes, without sensitive values and without any of `secrets`.
 * Variables and the prior state, which that holds in plain text, are left out.
 */
export function readPlan(json: unknown, secrets: readonly string[]): ReadablePlan {
  const plan = json as RawPlan;
  const changes = (plan.resource_changes ?? [])
    .filter(({ change }) => actionOf(change.actions) !== 'NO_OP')
    .map((resource) => ({
      address: resource.address,
      previous_address: resource.previous_address ?? null,
      mode: resource.mode === 'data' ? ('data' as const) : ('managed' as const),
      resource_type: resource.type,
      name: resource.name,
      provider: resource.provider_name,
      reason: resource.action_reason ?? null,
      ...shown(resource.change),
    }));
  const outputs = Object.entries(plan.output_changes ?? {})
    .filter(([, change]) => actionOf(change.actions) !== 'NO_OP')
    .map(([name, change]) => ({ name, ...shown(change) }));
  const count = (action: PlannedAction) => changes.filter((change) => change.action === action).length;
  const summary = {
    create: count('CREATE'),
    update: count('UPDATE'),
    replace: count('REPLACE'),
    delete: count('DELETE'),
  };
  const sensitive = [
    ...(plan.resource_changes ?? []).map(({ change }) => change),
    ...Object.values(plan.output_changes ?? {}),
  ].flatMap((change) => [
    ...markedStrings(change.before, change.before_sensitive),
    ...markedStrings(change.after, change.after_sensitive),
  ]);
  return withoutSecrets({ summary, changes, outputs }, [...new Set([...sensitive, ...secrets])]);
}

const shown = (change: RawChange): Shown => ({
  action: actionOf(change.actions),
  before: masked(change.before, change.before_sensitive),
  after: masked(withUnknown(change.after, change.after_unknown), change.after_sensitive),
});

function actionOf(actions: readonly string[]): PlannedAction {
  if (actions.length === 2) return 'REPLACE';
  const names: Record<string, PlannedAction> = {
    create: 'CREATE',
    update: 'UPDATE',
    delete: 'DELETE',
    read: 'READ',
    forget: 'FORGET',
  };
  return names[actions[0] ?? ''] ?? 'NO_OP';
}

/** Marks are trees of the value's shape: true stands for all below it. */
function masked(value: unknown, marks: unknown): unknown {
  if (marks === true) return value === null || value === undefined ? null : SENSITIVE;
  if (value === null || typeof value !== 'object' || marks === null || typeof marks !== 'object') return value ?? null;
  const at = marks as Record<string, unknown>;
  if (Array.isArray(value)) return value.map((item, index) => masked(item, at[index]));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item, at[key])]));
}

function withUnknown(value: unknown, marks: unknown): unknown {
  if (marks === true) return UNKNOWN;
  if (marks === null || typeof marks !== 'object') return value ?? null;
  if (Array.isArray(marks)) {
    const items = Array.isArray(value) ? value : [];
    return Array.from({ length: Math.max(items.length, marks.length) }, (_, index) =>
      withUnknown(items[index], marks[index]),
    );
  }
  const inside = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  const keys = new Set([...Object.keys(inside), ...Object.keys(marks)]);
  if (keys.size === 0) return value ?? null;
  return Object.fromEntries(
    [...keys].map((key) => [key, withUnknown(inside[key], (marks as Record<string, unknown>)[key])]),
  );
}

function markedStrings(value: unknown, marks: unknown): string[] {
  if (typeof value === 'string') return marks === true ? [value] : [];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, item]) =>
    markedStrings(item, marks === true || ((marks ?? {}) as Record<string, unknown>)[key]),
  );
}
