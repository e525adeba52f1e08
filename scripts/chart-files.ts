import { readFileSync } from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { parse } from 'yaml';
import { RIGHTS } from '#runtimes/kubernetes/rights.ts';

const PROJECT = path.join(import.meta.dirname, '..');

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
}

const PAGE_HEAD = `# Values of the chart

The Helm chart in \`deploy/chart\` takes these values. A value that is unknown or wrong is refused with its name.
[Quarterdeck on Kubernetes](guides/kubernetes-production.md) shows how to use them.

\`npm run gen\` writes this page from \`deploy/chart/values.schema.json\` and \`deploy/chart/values.yaml\`.
`;

/** Returns the text of docs/chart-values.md. */
export async function chartValuesPage(): Promise<string> {
  const schema = JSON.parse(read('deploy/chart/values.schema.json')) as Schema;
  const rows = leavesOf(schema, parse(read('deploy/chart/values.yaml')), []);
  const page = `${PAGE_HEAD}\n| Value | Default | Meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`;
  return format(page, { ...(await resolveConfig(path.join(PROJECT, 'docs/chart-values.md'))), parser: 'markdown' });
}

function leavesOf({ properties, description = '' }: Schema, value: unknown, names: string[]): string[] {
  if (!properties)
    return value === undefined
      ? []
      : [`| \`${names.join('.')}\` | ${show(value)} | ${description.replaceAll('|', '\\|')} |`];
  const values = (value ?? {}) as Record<string, unknown>;
  return Object.entries(properties).flatMap(([name, inner]) => leavesOf(inner, values[name], [...names, name]));
}

const show = (value: unknown): string => (value === '' ? '' : `\`${JSON.stringify(value).replaceAll('"', '')}\``);

/** Returns the rules of the chart's role, each with its reason. */
export function chartRights(): string {
  const rules = RIGHTS.map(
    ({ group, resource, verbs, reason }) =>
      `# ${reason}\n- apiGroups: ['${group}']\n  resources: ['${resource}']\n  verbs: [${verbs.join(', ')}]\n`,
  );
  return `# Made by \`npm run gen\` from src/runtimes/kubernetes/rights.ts.\n${rules.join('')}`;
}

const read = (file: string): string => readFileSync(path.join(PROJECT, file), 'utf8');
