import {
  accessSync,
  constants,
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { runChecked } from '#runtimes/tools/command.ts';
import { publishFolder } from '#runtimes/host/publish-folder.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { workFolder } from '#runtimes/tools/work-folders.ts';

/**
 * Makes a layer of folders that this account owns, so that an ordinary user's builds can install files. Without it, views show the
 * machine's folders as another account's, and nothing could be installed. The layer has the same folders and lies between the machine and
 * the images: a merged folder has the owner of its upper part. The files in them can be replaced, though not changed in place. About 20,000
 * folders, made once in about a second.
 */
export async function makeOwnedFolders(layer: string, tops: readonly string[], unshare: string): Promise<void> {
  if (existsSync(layer)) return;
  const making = workFolder(layer);
  removeTree(making);
  const closed = tops.flatMap((top) => mirror(`/${top}`, join(making, 'top', top)));
  const [first, ...others] = closed;
  if (first !== undefined) {
    // Overlayfs treats this device as an absent file; every account may make it inside a user namespace (Linux 5.8).
    await runChecked(unshare, ['--user', '--map-root-user', '--', 'mknod', first, 'c', '0', '0']);
    for (const path of others) linkSync(first, path);
  }
  copyChanged(join(making, 'top'));
  provideAccounts(join(making, 'top', 'etc'));
  publishFolder(making, layer);
}

/** Makes the folders; returns those that this account may not read. Views omit those, so that they can be created anew. */
function mirror(from: string, to: string): string[] {
  let entries;
  try {
    entries = readdirSync(from, { withFileTypes: true });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EACCES' || code === 'EPERM') return [to];
    if (code === 'ENOENT') return [];
    throw error;
  }
  mkdirSync(to, { recursive: true });
  const folders = entries.filter((entry) => entry.isDirectory());
  const closed = folders.flatMap(({ name }) => mirror(join(from, name), join(to, name)));
  chmodSync(to, (lstatSync(from).mode & 0o1777) | 0o700);
  // Locks and logs that only root may open would make package managers fail.
  const files = /^\/(etc|var)(\/|$)/.test(from) ? entries.filter((entry) => entry.isFile()) : [];
  const shut = files.filter(({ name }) => !isReadable(join(from, name))).map(({ name }) => join(to, name));
  return [...closed, ...shut];
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (error) {
    if (['EACCES', 'EPERM', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

/** Folders whose files package managers change in place; this account gets copies. */
const CHANGED = ['etc', 'var/lib/dpkg', 'var/log', 'var/log/apt'];
const LARGEST_COPY = 16 << 20;

function copyChanged(top: string): void {
  for (const folder of CHANGED.filter((folder) => existsSync(join(top, folder))))
    for (const entry of readdirSync(`/${folder}`, { withFileTypes: true })) {
      const from = join('/', folder, entry.name);
      if (!entry.isFile() || !isReadable(from) || statSync(from).size > LARGEST_COPY) continue;
      copyFileSync(from, join(top, folder, entry.name));
    }
}

/** Writes lists of accounts without passwords, and a setting by which apt does not change to another account. */
function provideAccounts(etc: string): void {
  mkdirSync(etc, { recursive: true });
  replaceFile(join(etc, 'shadow'), 'root:*:19000:0:99999:7:::\n');
  replaceFile(join(etc, 'gshadow'), 'root:*::\n');
  const apt = join(etc, 'apt', 'apt.conf.d');
  if (existsSync(apt)) writeFileSync(join(apt, '99-one-account'), 'APT::Sandbox::User "root";\n');
}

/** Replaces a file, also one that the layer marks as absent. */
function replaceFile(path: string, content: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, content, { mode: 0o600 });
}
