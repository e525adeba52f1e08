/** Secrets shorter than this are not masked: they would hide half of the log (decisions.md 36). */
const LEAST_LENGTH = 4;
const COVER = '***';

/** Masks secrets in text that comes in pieces, across the borders of the pieces too. */
export interface SecretsMask {
  /** Takes a piece and answers what can be shown of it already; the rest waits for what follows. */
  push(piece: string): string;
  /** Answers what still waits, at the end of the text. */
  flush(): string;
}

/** A mask for the secrets; of those with several lines each line is masked as well, because logs are read by line. */
export function createMask(secrets: readonly string[]): SecretsMask {
  const parts = secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]);
  // Longer ones first: one may be part of another.
  const needles = [...new Set(parts.filter((part) => part.length >= LEAST_LENGTH))].sort((a, b) => b.length - a.length);
  const longest = needles[0]?.length ?? 0;
  let waiting = '';

  /** Covers every secret that begins before `end`, and answers where the first uncovered character after them stands. */
  const cover = (text: string, end: number): { shown: string; rest: string } => {
    let shown = '';
    let at = 0;
    while (at < end) {
      const found = needles.find((needle) => text.startsWith(needle, at));
      shown += found ? COVER : text[at];
      at += found ? found.length : 1;
    }
    return { shown, rest: text.slice(at) };
  };
  const fast = (text: string): boolean => !needles.some((needle) => text.includes(needle));
  return {
    push: (piece) => {
      const text = waiting + piece;
      // The last characters may be the beginning of a secret whose end comes with the next piece.
      const end = Math.max(0, text.length - longest + 1);
      if (longest === 0) return text;
      if (fast(text)) {
        waiting = text.slice(end);
        return text.slice(0, end);
      }
      const { shown, rest } = cover(text, end);
      waiting = rest;
      return shown;
    },
    flush: () => {
      const { shown } = cover(waiting, waiting.length);
      waiting = '';
      return shown;
    },
  };
}
