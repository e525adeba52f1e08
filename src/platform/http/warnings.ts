/** Header with a JSON list of what was taken and has no effect. */
export const WARNINGS_HEADER = 'quarterdeck-warnings';

/** Bytes of the header: clients and proxies in between refuse answers whose headers have more than a few KiB. */
const MAX_WARNINGS_BYTES = 2_048;

const leftOut = (count: number): string => `${count} more ${count === 1 ? 'warning was' : 'warnings were'} left out.`;

/** Bytes for the last entry, whatever its number, with its quotes and comma. */
const RESERVED = leftOut(Number.MAX_SAFE_INTEGER).length + 3;

/** Writes warnings as a JSON list for a header, the first ones of those that are too long together; the last entry then says so. */
export function warningsText(warnings: readonly string[]): string {
  const entries: string[] = [];
  let bytes = 2;
  for (const warning of warnings) {
    const entry = headerText(warning);
    bytes += entry.length + 1;
    if (bytes + RESERVED > MAX_WARNINGS_BYTES) break;
    entries.push(entry);
  }
  if (entries.length < warnings.length) entries.push(headerText(leftOut(warnings.length - entries.length)));
  return `[${entries.join(',')}]`;
}

/** JSON that a header can carry: ASCII, without control characters. */
const headerText = (value: string): string =>
  JSON.stringify(value).replaceAll(
    /[^\u0020-\u007e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
