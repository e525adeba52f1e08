// Makes few files of the program. Node spends most of a start with finding a thousand modules, and keeps some 30 KB of each for as long as
// the process lives.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './prepare.mjs';

const SOURCES = path.join(ROOT, 'src');
const FOLDER = path.join(ROOT, 'node_modules', '.cache', 'program');
/** Libraries of several hundred modules. All others are loaded from node_modules as they are. */
const BUNDLED = ['kysely', 'typebox'];

/**
 * Returns the path of the program to run: the bundle of the sources as they are now, made if it is missing; the sources themselves where it
 * cannot be made. Earlier bundles stay, since a process that runs may yet load parts of its own. Tests name another file to begin with,
 * and the folder of what it imports besides.
 */
export async function bundleProgram(entry = path.join(SOURCES, 'main.ts'), folders = [SOURCES]) {
  const folder = path.join(FOLDER, fingerprint(entry, folders));
  const main = path.join(folder, 'main.js');
  if (existsSync(main)) return main;
  console.error('Bundling the program (once, some seconds)…');
  try {
    mkdirSync(FOLDER, { recursive: true });
    const made = mkdtempSync(`${folder}-`);
    await bundle(entry, made);
    // Of processes that make it at once one is first, and the others use what it made.
    if (existsSync(main)) rmSync(made, { recursive: true });
    else renameSync(made, folder);
    return main;
  } catch (error) {
    console.error(`There is no bundle, so the start takes longer: ${error.message}`);
    return entry;
  }
}

/** Returns a name that is another one as soon as a file of the sources is. */
function fingerprint(entry, folders) {
  const hash = createHash('sha256').update(path.relative(ROOT, entry));
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => path.relative(ROOT, path.join(folder, name))),
  );
  for (const name of [...files.sort(), 'package-lock.json', 'scripts/bundle.mjs']) {
    const { size, mtimeMs } = statSync(path.join(ROOT, name));
    hash.update(`${name} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

async function bundle(entry, folder) {
  const { rolldown } = await import('rolldown');
  const program = await rolldown({
    input: entry,
    cwd: ROOT,
    platform: 'node',
    external: (id) => /^[\w@]/.test(id) && !BUNDLED.includes(id),
    plugins: [{ name: 'places-of-sources', transform: keepPlaces }],
    onLog: (level, log) => {
      if (level === 'warn') throw new Error(log.message);
    },
  });
  const names = { entryFileNames: 'main.js', chunkFileNames: '[name]-[hash].js', keepNames: true };
  await program.write({ dir: folder, format: 'esm', ...names });
  await program.close();
}

/** Lets modules find the files beside them, such as programs that they start, where their sources are. */
function keepPlaces(code, id) {
  if (!id.startsWith(SOURCES) || !code.includes('import.meta.')) return null;
  const relative = path.relative(path.join(FOLDER, 'bundle'), id).replaceAll(path.sep, '/');
  const url = `new URL(${JSON.stringify(relative)}, import.meta.url)`;
  const folder = JSON.stringify(path.dirname(relative));
  const places = {
    url: `${url}.href`,
    dirname: `process.getBuiltinModule('node:path').join(import.meta.dirname, ${folder})`,
    main: 'false',
  };
  return code.replaceAll(/import\.meta\.(url|dirname|main)\b/g, (_all, name) => `(${places[name]})`);
}
