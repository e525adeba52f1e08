import { readFileSync } from 'node:fs';
import path from 'node:path';
import { RELEASE } from '#platform/release.ts';
import { print } from '#cli/print.ts';
import { embeddedBinaries } from '#platform/database/embedded.ts';

/** Prints the versions of this program, of Node.js and of the embedded PostgreSQL. Reads no setting and starts nothing. */
export function versionCommand(): void {
  print([`quarterdeck ${RELEASE}`, `Node.js ${process.version.slice(1)}`, `PostgreSQL ${postgres()}`].join('\n'));
}

/** Version of the embedded PostgreSQL: the first two numbers of that of its package. */
function postgres(): string {
  const binaries = embeddedBinaries();
  if (binaries === null) return `none for ${process.platform} ${process.arch}: set DATABASE_URL`;
  const { version } = JSON.parse(readFileSync(path.join(binaries, '../package.json'), 'utf8')) as { version: string };
  return `${/^\d+\.\d+/.exec(version)![0]} (embedded)`;
}
