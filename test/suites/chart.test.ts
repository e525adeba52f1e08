import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartRights, chartValuesPage } from '../../scripts/chart-files.ts';

test('the rights of the chart are those of `quarterdeck cluster rbac`, and docs/chart-values.md is what `npm run gen` makes', async () => {
  expect(readFileSync('deploy/chart/rights.yaml', 'utf8')).toBe(chartRights());
  expect(readFileSync('docs/chart-values.md', 'utf8')).toBe(await chartValuesPage());
});

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
}

/** Returns the paths of values that only one of the two has, and of those without a description. */
function differences({ properties, description }: Schema, value: unknown, at: string): string[] {
  const missing = at !== '' && !description ? [`${at}: no description`] : [];
  if (!properties) return missing;
  const values = value as Record<string, unknown>;
  const names = new Set([...Object.keys(properties), ...Object.keys(values)]);
  names.delete('global');
  return missing.concat(
    [...names].flatMap((name) =>
      properties[name] && name in values
        ? differences(properties[name], values[name], `${at}.${name}`)
        : [`${at}.${name}: not in both`],
    ),
  );
}

test('each value of the chart has a default, and a meaning in its schema', () => {
  const schema = JSON.parse(readFileSync('deploy/chart/values.schema.json', 'utf8')) as Schema;
  expect(differences(schema, parse(readFileSync('deploy/chart/values.yaml', 'utf8')), '')).toEqual([]);
});

test('the chart has the version of the program', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(parse(readFileSync('deploy/chart/Chart.yaml', 'utf8'))).toMatchObject({ version, appVersion: version });
});
