import { posix } from 'node:path';

/** Longest name of an entry, and of a folder or file within it, in bytes; and the deepest nesting. */
const MOST_NAME_BYTES = 1024;
const MOST_PART_BYTES = 255;
const MOST_DEPTH = 64;

/** Spellings that file systems take for `.git`: of macOS with code points that it ignores, of Windows with its short name and its ends. */
const IGNORED = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;
const GIT_FOLDER = /^(?:\.git|git~\d+)[\s.]*(?::.*)?$/i;

/** Files that git reads itself, with their short names on Windows: as links they would lead it to others. */
const GIT_FILES =
  /^(?:\.(?:gitmodules|gitattributes|gitignore|mailmap)|(?:gitmod|gitatt|gitign|mailma)~\d+|(?:gi7eba|gi7d29|gi250a|maba30)~\d+)[\s.]*(?::.*)?$/i;

/** Returns a name as file systems compare it that ignore case and the composition of letters. */
export const foldedOf = (path: string): string => path.replace(IGNORED, '').normalize('NFC').toLowerCase();

/** Returns a name for messages: quoted, on one line, and short. */
export function shown(name: string): string {
  const text = JSON.stringify(name);
  return text.length > 200 ? `${text.slice(0, 200)}…"` : text;
}

/** Returns the path of an entry without `./` and `/` around it; empty for the root. Throws Error for a name that is not taken. */
export function pathOf(name: string): string {
  const refuse = (reason: string) => new Error(`the entry ${shown(name)} ${reason}`);
  if (name.startsWith('/')) throw refuse('has an absolute name: names must be relative to the folder');
  if (name.includes('\ufffd')) throw refuse('has a name that is not UTF-8');
  if (/\p{Cc}/u.test(name)) throw refuse('has a name with control characters');
  if (name.includes('\\')) throw refuse('has a name with a backslash');
  const path = name.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '');
  if (path === '' || path === '.') return '';
  const parts = path.split('/');
  if (parts.includes('..')) throw refuse('leads out of the folder: names must be without ".."');
  if (parts.some((part) => part === '' || part === '.'))
    throw refuse('has a name that must be written without empty parts and without "."');
  if (parts.some((part) => GIT_FOLDER.test(part.replace(IGNORED, ''))))
    throw refuse("belongs to git itself: leave it out, with tar's --exclude=.git");
  if (parts.length > MOST_DEPTH) throw refuse(`is nested deeper than ${MOST_DEPTH} folders`);
  if (Buffer.byteLength(path) > MOST_NAME_BYTES || parts.some((part) => Buffer.byteLength(part) > MOST_PART_BYTES))
    throw refuse(`has a name of more than ${MOST_NAME_BYTES} bytes, or ${MOST_PART_BYTES} in one part`);
  return path;
}

/**
 * Throws Error for a symbolic link that leads out of the folder. Entries never lie below links, so that leading `..` are counted from the
 * link's own folder. Anywhere else `..` would be counted from where another link leads.
 */
export function checkLink(path: string, target: string): void {
  const refuse = (reason: string) => new Error(`the link ${shown(path)} ${reason}`);
  if (GIT_FILES.test(posix.basename(path).replace(IGNORED, '')))
    throw refuse('is read by git itself, and must be a file');
  if (target === '') throw refuse('leads nowhere');
  if (target.startsWith('/')) throw refuse(`leads to ${shown(target)}, out of the folder: targets must be relative`);
  if (target.includes('\ufffd')) throw refuse('has a target that is not UTF-8');
  if (/\p{Cc}/u.test(target) || Buffer.byteLength(target) > MOST_NAME_BYTES)
    throw refuse('has a target that is too long or has control characters');
  if (target.includes('\\')) throw refuse('has a target with a backslash');
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.some((part) => GIT_FOLDER.test(part.replace(IGNORED, ''))))
    throw refuse(`leads to ${shown(target)}, which belongs to git itself`);
  const inner = parts.findIndex((part) => part !== '..');
  if (inner >= 0 && parts.includes('..', inner)) throw refuse('has a target with ".." behind a name: begin with ".."');
  const up = inner < 0 ? parts.length : inner;
  if (up > path.split('/').length - 1) throw refuse(`leads to ${shown(target)}, out of the folder`);
}
