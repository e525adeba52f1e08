import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Action } from '#platform/access/actions.ts';
import { compilePolicy, MAX_POLICY_LENGTH } from '#platform/access/policy.ts';
import { FUNCTIONS } from '#platform/access/rego/evaluate.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../../docs/policies.md'), 'utf8');
const [reader, projects, reasons] = [...page.matchAll(/```rego\n([\s\S]*?)```/g)].map(([, text]) =>
  compilePolicy(text!),
);
const at = { organizationId: 'o', projectId: '3f0c1a52-7d0e-4b8a-9c55-2f6f1a9be8d1' };

describe('the page about policies', () => {
  test('has an example that reads everything and deploys what is not production', () => {
    const may = (action: Action, mode?: 'PRODUCTION' | 'STAGING') => reader!.allows(action, { ...at, mode });
    expect(may('service.read', 'PRODUCTION')).toBe(true);
    expect(may('service.deploy', 'STAGING')).toBe(true);
    expect(may('service.deploy', 'PRODUCTION')).toBe(false);
    expect(may('service.edit', 'STAGING')).toBe(false);
    // Without an environment there is no mode to compare.
    expect(may('organization.deploy')).toBe(false);
  });

  test('has an example that works in two projects only', () => {
    expect(projects!.allows('service.delete', at)).toBe(true);
    expect(projects!.allows('service.read', { ...at, projectId: 'another' })).toBe(false);
    expect(projects!.allows('organization.read', { organizationId: 'o' })).toBe(false);
  });

  test('has an example that allows all but what a reason speaks against', () => {
    expect(reasons!.allows('service.edit', { ...at, mode: 'STAGING' })).toBe(true);
    expect(reasons!.allows('service.edit', { ...at, mode: 'PRODUCTION' })).toBe(false);
    expect(reasons!.allows('service.read', { ...at, mode: 'PRODUCTION' })).toBe(true);
    expect(reasons!.allows('service.delete', { ...at, mode: 'STAGING' })).toBe(false);
  });

  test('names every function with its arguments, the fields of the input, and the longest policy', () => {
    const named = [...page.matchAll(/^\| `(\w+)\(([^)]*)\)` /gm)].map(([, name, args]) => [
      name,
      args!.split(',').length,
    ]);
    expect(named).toEqual(Object.entries(FUNCTIONS).map(([name, { arity }]) => [name, arity]));
    const asked = [...page.matchAll(/^\| `([a-z_]+)` /gm)].map(([, name]) => name);
    expect(asked).toEqual([
      'action',
      'level',
      'organization_id',
      'project_id',
      'environment_id',
      'environment_mode',
      'cluster_id',
    ]);
    expect(page).toContain(MAX_POLICY_LENGTH.toLocaleString('en'));
  });
});
