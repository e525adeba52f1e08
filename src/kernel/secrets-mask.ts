/** Secrets shorter than this are not masked: they would hide half of the log (docs/contributing/rules.md 36). */
const LEAST_LENGTH = 4;
const COVER = '***';

/** Masks secrets in text that comes in pieces, across the borders of the pieces too. */
export interface SecretsMask {
  /** Takes a piece and returns the part that can be shown already; the rest waits for the next pieces. */
  push(piece: string): string;
  /** Returns the remaining text at the end; the mask is then as new. */
  flush(): string;
}

/**
 * Makes a mask for the secrets. Of those with several lines each line is masked as well, because logs are read by line; those of eight
 * characters and more also in JSON, base64, hexadecimal digits and URLs. Where secrets overlap or touch, all of it is one cover; how the
 * text is cut into pieces makes no difference. Making one costs more than using it: keep it for the whole log.
 */
export function createMask(secrets: readonly string[], cover = COVER): SecretsMask {
  const needles = needlesOf(secrets);
  const find = finderOf(needles);
  const longest = Math.max(0, ...needles.map((needle) => needle.length));
  let waiting = '';
  /** So many characters at the beginning of `waiting` are covered, and their `***` was shown. */
  let covered = 0;
  /** True if what was shown last is a `***`, which goes on if the next character is covered too. */
  let isCover = false;

  /** Shows the text up to `end`, at least one character; a cover that reaches beyond it is remembered. */
  const show = (text: string, end: number): string => {
    let shown = '';
    let at = 0;
    const ranges = coveredRanges(text, find, covered);
    covered = 0;
    for (const [from, to] of ranges) {
      if (from >= end) break;
      shown += text.slice(at, from);
      if (from > 0 || !isCover) shown += cover;
      at = Math.min(to, end);
      covered = Math.max(0, to - end);
    }
    isCover = at === end;
    waiting = text.slice(end);
    return shown + text.slice(at, end);
  };
  return {
    push: (piece) => {
      const text = waiting + piece;
      // The last characters may be the beginning of a secret whose end comes with the next piece.
      const end = text.length - Math.max(0, longest - 1);
      if (end > 0) return show(text, end);
      waiting = text;
      return '';
    },
    flush: () => {
      const shown = waiting === '' ? '' : show(waiting, waiting.length);
      isCover = false;
      return shown;
    },
  };
}

/** Masks secrets in texts that come whole. `cover` stands in their place. */
export function maskOf(secrets: readonly string[], cover?: string): (text: string) => string {
  const mask = createMask(secrets, cover);
  return (text) => mask.push(text) + mask.flush();
}

/** Secrets of at least so many characters are masked in the encodings below, too: the encoding of a shorter one occurs by chance. */
const LEAST_ENCODED = 8;
/** Limit of the length of a search text: longer forms are searched in pieces, which bounds the work at each character. */
const LONGEST_NEEDLE = 64;
/** Line lengths of `base64` (RFC 2045 and PEM). */
const BASE64_LINES = [76, 64];

function needlesOf(secrets: readonly string[]): string[] {
  const needles = new Set<string>();
  for (const secret of secrets)
    for (const form of formsOf(secret)) for (const piece of piecesOf(form)) needles.add(piece);
  return [...needles].filter((form) => form.length >= LEAST_LENGTH).sort();
}

function formsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/);
  const ownLines = lines.length > 1 ? lines.flatMap((line) => [line, line.trim()]) : [];
  const plain = [secret, JSON.stringify(secret).slice(1, -1), ...ownLines];
  if (secret.length < LEAST_ENCODED) return plain;
  return [...plain, ...encodingsOf(secret)];
}

/** Builds the encodings of a secret: base64 wherever it stands in the encoded text, hexadecimal digits, part of a URL. */
function encodingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const whole = bytes.toString('base64').replaceAll('=', '');
  const wrapped = BASE64_LINES.filter((width) => whole.length > width).flatMap((width) =>
    (whole.match(new RegExp(`.{1,${width}}`, 'g')) ?? []).filter((line) => line.length >= LEAST_ENCODED),
  );
  // The last character of a part holds bits of what follows it.
  const parts = [0, 1, 2].map((at) => bytes.subarray(at, at + Math.floor((bytes.length - at) / 3) * 3));
  const base64 = [whole, ...parts.map((part) => part.toString('base64')), ...wrapped];
  const urlSafe = base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  const hex = bytes.toString('hex');
  const url = encodeURIComponent(secret.toWellFormed());
  const lowerUrl = url.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
  const form = url.replaceAll('%20', '+');
  return [...base64, ...urlSafe, hex, hex.toUpperCase(), url, lowerUrl, form];
}

/** Returns a form, or its pieces, the last of which ends where the form ends. */
function piecesOf(form: string): string[] {
  if (form.length <= LONGEST_NEEDLE) return [form];
  const pieces: string[] = [];
  for (let at = 0; at + LONGEST_NEEDLE <= form.length; at += LONGEST_NEEDLE)
    pieces.push(form.slice(at, at + LONGEST_NEEDLE));
  return [...pieces, form.slice(-LONGEST_NEEDLE)];
}

/** Finds the longest needle that a text has at a place; 0 where it has none. */
type Finder = (text: string, at: number) => number;

const BEGINNINGS = 1 << 16;

/**
 * A finder among sorted needles. Of all needles the one that sorts last before the text has the longest one that begins the text as its
 * beginning: a binary search finds it, so that the work grows with the logarithm of their number.
 */
function finderOf(needles: readonly string[]): Finder {
  const beginnings = new Uint8Array(BEGINNINGS);
  for (const needle of needles) beginnings[beginningOf(needle, 0)] = 1;
  // For each needle the longest other one that it begins with, or -1.
  const shorter = new Int32Array(needles.length).fill(-1);
  for (let n = 1; n < needles.length; n++) {
    let before = n - 1;
    while (before >= 0 && !needles[n]!.startsWith(needles[before]!)) before = shorter[before]!;
    shorter[n] = before;
  }
  return (text, at) => {
    if (beginnings[beginningOf(text, at)] === 0) return 0;
    const rest = text.slice(at, at + LONGEST_NEEDLE);
    let [low, high] = [0, needles.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (needles[middle]! <= rest) low = middle + 1;
      else high = middle;
    }
    let found = low - 1;
    while (found >= 0 && !rest.startsWith(needles[found]!)) found = shorter[found]!;
    return found < 0 ? 0 : needles[found]!.length;
  };
}

/** Returns a number for the four characters at a position. */
const beginningOf = (text: string, at: number): number =>
  (text.charCodeAt(at) +
    31 * text.charCodeAt(at + 1) +
    961 * text.charCodeAt(at + 2) +
    29791 * text.charCodeAt(at + 3)) &
  (BEGINNINGS - 1);

/** Finds the ranges to hide, in order, neither overlapping nor touching. The first `covered` characters are such a range from before. */
function coveredRanges(text: string, find: Finder, covered: number): [number, number][] {
  const merged: [number, number][] = covered > 0 ? [[0, covered]] : [];
  for (let at = 0; at + LEAST_LENGTH <= text.length; at++) {
    const length = find(text, at);
    if (length === 0) continue;
    const last = merged.at(-1);
    if (last && at <= last[1]) last[1] = Math.max(last[1], at + length);
    else merged.push([at, at + length]);
  }
  return merged;
}
