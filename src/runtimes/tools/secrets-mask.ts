/** Secrets shorter than this are not masked: they would hide half of the log (decisions.md 36). */
const LEAST_LENGTH = 4;
const COVER = '***';

/** Masks secrets in text that comes in pieces, across the borders of the pieces too. */
export interface SecretsMask {
  /** Takes a piece and answers what can be shown of it already; the rest waits for what follows. */
  push(piece: string): string;
  /** Answers what still waits, at the end of the text; the mask is as new then. */
  flush(): string;
}

/**
 * A mask for the secrets. Of those with several lines each line is masked as well, because logs are read by line, and of those
 * with quotes or the like also the form that they have in JSON. Where secrets overlap or touch, all of it is one `***`; how the
 * text is cut into pieces makes no difference. Making one costs more than using it: keep it for the whole log.
 */
export function createMask(secrets: readonly string[]): SecretsMask {
  const needles = needlesOf(secrets);
  const longest = Math.max(0, ...needles.map((needle) => needle.length));
  let waiting = '';
  /** So many characters at the beginning of `waiting` are covered, and their `***` was shown. */
  let covered = 0;
  /** Whether what was shown last is a `***`, which goes on if the next character is covered too. */
  let isCover = false;

  /** Shows the text up to `end`, at least one character; what is covered beyond it is remembered. */
  const show = (text: string, end: number): string => {
    let shown = '';
    let at = 0;
    const ranges = coveredRanges(text, needles, covered);
    covered = 0;
    for (const [from, to] of ranges) {
      if (from >= end) break;
      shown += text.slice(at, from);
      if (from > 0 || !isCover) shown += COVER;
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

function needlesOf(secrets: readonly string[]): string[] {
  const forms = secrets.flatMap((secret) => {
    const lines = secret.split(/\r?\n/);
    const ownLines = lines.length > 1 ? lines.flatMap((line) => [line, line.trim()]) : [];
    return [secret, JSON.stringify(secret).slice(1, -1), ...ownLines];
  });
  return [...new Set(forms)].filter((form) => form.length >= LEAST_LENGTH);
}

/**
 * What must not be shown, as ranges in order that neither overlap nor touch. The first `covered` characters are such a range
 * from before.
 */
function coveredRanges(text: string, needles: readonly string[], covered: number): [number, number][] {
  const found: [number, number][] = covered > 0 ? [[0, covered]] : [];
  for (const needle of needles)
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1))
      found.push([at, at + needle.length]);
  found.sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [from, to] of found) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}
