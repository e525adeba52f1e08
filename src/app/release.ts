import { readFileSync } from 'node:fs';
import path from 'node:path';

const PACKAGE = path.join(import.meta.dirname, '../../package.json');

/** Version of this program, as its package says. */
export const RELEASE = (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }).version;
