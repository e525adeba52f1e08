/** Version of a chart (semver 2.0.0, without a leading v or with one). */
const VERSION = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z-.]+))?(?:\+[0-9A-Za-z-.]+)?$/;

/** Tells whether a text is a version of a chart: a registry's tags may be anything. */
export const isVersion = (text: string): boolean => VERSION.test(text);

/** Sorts versions by semver, the newest first; other texts come last. */
export function newestFirst(versions: string[]): string[] {
  const parsed = versions.map((text) => ({ text, parts: VERSION.exec(text) }));
  return parsed.sort((one, other) => compare(other.parts, one.parts)).map(({ text }) => text);
}

function compare(one: RegExpExecArray | null, other: RegExpExecArray | null): number {
  if (!one || !other) return Number(one !== null) - Number(other !== null);
  for (const part of [1, 2, 3]) {
    const difference = Number(one[part]) - Number(other[part]);
    if (difference !== 0) return difference;
  }
  return comparePrerelease(one[4], other[4]);
}

/** Compares pre-releases: a version without one is newer than a version with one, and numbers are less than words. */
function comparePrerelease(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  const [left, right] = [one.split('.'), other.split('.')];
  for (let n = 0; n < Math.max(left.length, right.length); n++) {
    const difference = compareIdentifiers(left[n], right[n]);
    if (difference !== 0) return difference;
  }
  return 0;
}

function compareIdentifiers(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return Number(one !== undefined) - Number(other !== undefined);
  const numeric = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (numeric[0] && numeric[1]) return Number(one) - Number(other);
  if (numeric[0] !== numeric[1]) return numeric[0] ? -1 : 1;
  return one < other ? -1 : Number(one > other);
}
