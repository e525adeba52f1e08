// Plain JavaScript for whatever Node there is: installs what is missing and finds the Node that the project runs on.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const MODULES = path.join(ROOT, 'node_modules');
const STAMP = path.join(MODULES, '.quarterdeck-installed');

/** Installs the packages of package-lock.json if that was not done yet, and answers the Node to run with. */
export function prepare() {
  const lock = createHash('sha256')
    .update(readFileSync(path.join(ROOT, 'package-lock.json')))
    .digest('hex');
  if (!existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== lock) install(lock);
  const own = path.join(MODULES, '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');
  if (existsSync(own)) return own;
  const least = leastNode();
  if (Number(process.versions.node.split('.')[0]) >= least) return process.execPath;
  console.error(
    `Quarterdeck needs Node.js ${least} or later and found no binary of its own for ${process.platform} ${process.arch}; this is ${process.version}.`,
  );
  process.exit(1);
}

/** Least major version of Node, as package.json says it in `engines`. */
function leastNode() {
  const { engines } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  return Number(/\d+/.exec(engines.node)[0]);
}

function install(lock) {
  refuseLink();
  console.error('Installing packages (once, about half a minute)…');
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm]] : [process.platform === 'win32' ? 'npm.cmd' : 'npm', []];
  const result = spawnSync(command, [...args, 'ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  });
  if (result.status !== 0) {
    console.error('npm ci failed: see above.');
    process.exit(result.status ?? 1);
  }
  writeFileSync(STAMP, lock);
}

/** Packages behind a link are another tree's: installing would take them away from it. */
function refuseLink() {
  if (!lstatSync(MODULES, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  console.error(
    `node_modules is a link to ${readlinkSync(MODULES)}, whose packages are not those of package-lock.json. Nothing was installed.\nInstall there what is wanted here, or remove the link and begin again: packages are installed here then.`,
  );
  process.exit(1);
}
