import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { SETTINGS, type Setting, type SettingValues } from '#platform/settings/schema.ts';

export type Settings = SettingValues;

/** Settings of earlier releases that have another name now. */
const RENAMED: Record<string, string> = { QUARTERDECK_DATABASE_PORTS: 'QUARTERDECK_PUBLISHED_PORTS' };

/** Wrong settings, all of them together, each with what would be right. */
export class SettingsError extends Error {
  readonly problems: string[];
  constructor(problems: string[]) {
    super(`The settings are wrong:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'SettingsError';
    this.problems = problems;
  }
}

/**
 * Reads the settings once, at start: environment variables win over the file that `QUARTERDECK_CONFIG` names
 * (JSON, the same names), which wins over the defaults. Throws SettingsError.
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const problems: string[] = [];
  const file = readFile(environment.QUARTERDECK_CONFIG, problems);
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    const text = environment[setting.name] ?? file[setting.name];
    if (text === undefined || text === '') {
      values[key] = setting.default;
      continue;
    }
    try {
      values[key] = setting.parse(text);
    } catch (error) {
      problems.push(`${setting.name}=${setting.secret ? '…' : text}: ${(error as Error).message}`);
    }
  }
  const known = new Set(Object.values(SETTINGS).map((setting) => setting.name));
  for (const name of [
    ...Object.keys(environment).filter((key) => key.startsWith('QUARTERDECK_')),
    ...Object.keys(file),
  ])
    if (!known.has(name))
      problems.push(
        RENAMED[name]
          ? `${name} is called ${RENAMED[name]} now.`
          : `${name} is not a setting: docs/settings.md lists them.`,
      );
  if (values.temporaryData && !values.databaseUrl)
    problems.push(
      `${SETTINGS.temporaryData.name}=true: must be false without ${SETTINGS.databaseUrl.name}, as the embedded PostgreSQL would end with the folder.`,
    );
  if (values.temporaryData && values.runtime !== 'kubernetes')
    problems.push(
      `${SETTINGS.temporaryData.name}=true: must be false unless ${SETTINGS.runtime.name}=kubernetes, as what another runtime keeps on this machine would end with the folder.`,
    );
  if (values.copiesUrl && !(values.copiesAccessKeyId && values.copiesSecretAccessKey))
    problems.push(
      `${SETTINGS.copiesUrl.name}: needs ${SETTINGS.copiesAccessKeyId.name} and ${SETTINGS.copiesSecretAccessKey.name}.`,
    );
  if (Boolean(values.smtpUrl) !== Boolean(values.smtpFrom))
    problems.push(`${SETTINGS.smtpUrl.name} and ${SETTINGS.smtpFrom.name}: set both, or neither.`);
  if (values.smtpPasswordFile && !/^smtps?:\/\/[^/:@]+@/.test(String(values.smtpUrl)))
    problems.push(
      `${SETTINGS.smtpPasswordFile.name}: needs a user without a password in ${SETTINGS.smtpUrl.name}, such as smtp://user@smtp.example.com:587.`,
    );
  if (problems.length > 0) throw new SettingsError(problems);
  const settings = values as unknown as Settings;
  return { ...settings, dataDir: path.resolve(settings.dataDir) };
}

function readFile(file: string | undefined, problems: string[]): Record<string, string> {
  if (!file) return {};
  if (!existsSync(file)) {
    problems.push(`QUARTERDECK_CONFIG=${file}: there is no such file.`);
    return {};
  }
  try {
    const parsed = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    return Object.fromEntries(Object.entries(parsed).map(([name, value]) => [name, String(value)]));
  } catch (error) {
    problems.push(`QUARTERDECK_CONFIG=${file}: not JSON (${(error as Error).message}).`);
    return {};
  }
}
