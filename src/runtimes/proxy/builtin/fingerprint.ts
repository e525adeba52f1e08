import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';

const TYPES_ONLY = /\b(?:import|export) type [^;]*;/g;
const IMPORTED = /\b(?:from|import)\s+'([^']+)'|\bimport\('([^']+)'\)/g;

/**
 * Hash of everything that a program runs: its text, the files that it imports directly or indirectly, the manifests of packages among them,
 * and Node's version. Types are left out: they do not change the running code.
 */
export function fingerprintOf(program: string): string {
  const texts = new Map<string, string>();
  collect(program, texts);
  const hash = createHash('sha256').update(process.version);
  // Only the contents count: the same release may lie in another folder.
  for (const text of [...texts.values()].sort()) hash.update(`${text.length}:${text}`);
  return hash.digest('hex').slice(0, 16);
}

function collect(file: string, texts: Map<string, string>): void {
  if (texts.has(file)) return;
  const text = readFileSync(file, 'utf8');
  texts.set(file, text);
  const { resolve } = createRequire(file);
  for (const [, atStart, onDemand] of text.replaceAll(TYPES_ONLY, '').matchAll(IMPORTED)) {
    const imported = (atStart ?? onDemand)!;
    if (isBuiltin(imported)) continue;
    if (/^[#.]/.test(imported)) collect(resolve(imported), texts);
    else {
      const manifest = resolve(`${packageOf(imported)}/package.json`);
      texts.set(manifest, readFileSync(manifest, 'utf8'));
    }
  }
}

/** Returns the package of a module: `undici` of `undici/types`, `@scope/name` of `@scope/name/part`. */
const packageOf = (name: string): string => name.split('/', name.startsWith('@') ? 2 : 1).join('/');
