/** Patterns of COPY and .dockerignore. Both are Go's `filepath.Match`; .dockerignore has `**` and `!` besides. */

/** Returns the regular expression of a path segment's pattern (`*`, `?`, `[a-z]`, `\x`). */
export function segmentPattern(segment: string): RegExp {
  return new RegExp(`^${translate(segment)}$`, 'u');
}

/** Filter of the paths of a tree, relative and without `./`. */
export interface IgnoreFilter {
  (path: string): boolean;
  keepsSome: boolean;
}

/** Returns the filter of a .dockerignore file: the last line that matches the path or a folder above it decides. */
export function ignoreFilter(lines: readonly string[]): IgnoreFilter {
  const rules = lines
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(toRule)
    .filter((rule) => rule !== null);
  const filter = (path: string) => {
    let out = false;
    for (const rule of rules) if (rule.pattern.test(path)) out = !rule.keep;
    return out;
  };
  return Object.assign(filter, { keepsSome: rules.some((rule) => rule.keep) });
}

function toRule(line: string): { keep: boolean; pattern: RegExp } | null {
  const keep = line.startsWith('!');
  const parts = (keep ? line.slice(1) : line)
    .trim()
    .split('/')
    .filter((part) => part !== '' && part !== '.');
  if (parts.length === 0) return null;
  let source = '';
  parts.forEach((part, n) => {
    const last = n === parts.length - 1;
    if (part === '**') source += last ? '.*' : '(?:.*/)?';
    else source += translate(part) + (last ? '' : '/');
  });
  return { keep, pattern: new RegExp(`^${source}(?:/.*)?$`, 'u') };
}

function translate(segment: string): string {
  let out = '';
  for (let at = 0; at < segment.length; at++) {
    const character = segment[at]!;
    if (character === '*') out += segment[at + 1] === '*' ? (at++, '.*') : '[^/]*';
    else if (character === '?') out += '[^/]';
    else if (character === '[' && segment.indexOf(']', at + 2) > 0) {
      const end = segment.indexOf(']', at + 2);
      const body = segment.slice(at + 1, end).replace(/[\\[&~|]/g, '\\$&');
      out += `[${body}]`;
      at = end;
    } else {
      if (character === '\\' && at + 1 < segment.length) at++;
      out += segment[at]!.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    }
  }
  return out;
}
