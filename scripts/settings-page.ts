import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { SETTINGS, type Setting } from '#platform/settings/schema.ts';

const PROJECT = path.join(import.meta.dirname, '..');

const HEAD = `# Settings

Every setting is an environment variable. A JSON file that \`QUARTERDECK_CONFIG\` names (\`{"QUARTERDECK_PORT": 9000}\`) can have
settings as well; the environment wins over it. An empty value counts as none, and the default below holds. A setting that is wrong or
unknown stops the start, which names all of them. \`<project>\` is the folder of the clone.

\`npm run gen\` writes this page from \`src/platform/settings/schema.ts\`.
`;

/** The text of docs/settings.md. */
export async function settingsPage(): Promise<string> {
  const rows = (Object.values(SETTINGS) as Setting<unknown>[]).map(
    (setting) => `| \`${setting.name}\` | ${show(setting.default)} | ${cell(setting)} |`,
  );
  const page = `${HEAD}\n| Setting | Default | Meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`;
  return format(page, { ...(await resolveConfig(path.join(PROJECT, 'docs/settings.md'))), parser: 'markdown' });
}

const cell = ({ description, secret }: Setting<unknown>): string =>
  `${description.replaceAll('|', '\\|')}${secret ? ' Never shown.' : ''}`;

function show(value: unknown): string {
  const text = Array.isArray(value) ? value.join(':') : String(value);
  return text === '' ? '' : `\`${text.replaceAll(PROJECT, '<project>')}\``;
}
