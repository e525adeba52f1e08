import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** Service of a compose file, as far as deploy/compose.yaml uses it. */
export interface ComposeService {
  image: string;
  user?: string;
  command?: string[];
  network_mode?: string;
  environment: Record<string, string>;
  volumes: string[];
  group_add?: string[];
  read_only?: boolean;
  tmpfs?: string[];
  cap_drop?: string[];
  security_opt?: string[];
  init?: boolean;
  healthcheck: { test: string[] };
}

export interface ComposeFile {
  services: Record<'database' | 'quarterdeck', ComposeService>;
  volumes: Record<string, null>;
}

/** Reads deploy/compose.yaml with variables filled in, as `docker compose` does. Throws the message of a variable that is required. */
export function readCompose(variables: Record<string, string>): ComposeFile {
  const fill = (_: string, name: string, operator: string | undefined, text = '') => {
    const value = variables[name];
    if (operator === ':?' && !value) throw new Error(`${name} ${text}`);
    return value || (operator === ':-' ? text : '');
  };
  const given = readFileSync('deploy/compose.yaml', 'utf8').replaceAll(/^\s*#.*$/gm, '');
  const filled = given.replaceAll(/(?<!\$)\$\{(\w+)(:[-?])?([^}]*)\}/g, fill);
  return parse(filled.replaceAll('$$', '$')) as ComposeFile;
}
