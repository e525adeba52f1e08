import { badRequest } from '#kernel/errors.ts';

/** Limit of characters in the words of one instruction: each of a few dozen ARGs may name the one before it twice. */
const LONGEST = 128 * 1024;

/** Returns the value of a variable; undefined if it isn't set. */
export type Lookup = (name: string) => string | undefined;

/**
 * Cuts text into words as a Dockerfile does: quotes keep blanks, the escape character keeps the next one, `$NAME`, `${NAME}`,
 * `${NAME:-word}` and `${NAME:+word}` are replaced (not within single quotes). What a variable holds is not cut.
 */
export function splitWords(text: string, lookup: Lookup, escape = '\\'): string[] {
  return new Words(text, lookup, escape).read(true);
}

/** Expands a text that is one word, blanks included. */
export function expandWord(text: string, lookup: Lookup, escape = '\\'): string {
  return new Words(text, lookup, escape).read(false)[0] ?? '';
}

class Words {
  readonly #text: string;
  readonly #lookup: Lookup;
  readonly #escape: string;
  #at = 0;
  #length = 0;

  constructor(text: string, lookup: Lookup, escape: string) {
    this.#text = text;
    this.#lookup = lookup;
    this.#escape = escape;
  }

  read(cut: boolean): string[] {
    const words: string[] = [];
    let word: string | null = null;
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at]!;
      if (cut && /\s/.test(character)) {
        if (word !== null) words.push(word);
        word = null;
        this.#at++;
      } else {
        const piece = this.#piece(character);
        this.#length += piece.length;
        if (this.#length > LONGEST)
          throw badRequest(`An instruction is longer than ${LONGEST / 1024} KiB once its variables are replaced.`);
        word = (word ?? '') + piece;
      }
    }
    return word === null ? words : [...words, word];
  }

  #piece(character: string): string {
    if (character === "'") return this.#single();
    if (character === '"') return this.#double();
    if (character === '$') return this.#variable();
    this.#at++;
    if (character !== this.#escape || this.#at >= this.#text.length) return character;
    return this.#text[this.#at++]!;
  }

  #single(): string {
    const end = this.#text.indexOf("'", this.#at + 1);
    const stop = end < 0 ? this.#text.length : end;
    const inside = this.#text.slice(this.#at + 1, stop);
    this.#at = stop + 1;
    return inside;
  }

  #double(): string {
    let inside = '';
    this.#at++;
    while (this.#at < this.#text.length && this.#text[this.#at] !== '"') {
      const character = this.#text[this.#at]!;
      if (character === '$') inside += this.#variable();
      else if (character === this.#escape && `"$${this.#escape}`.includes(this.#text[this.#at + 1] ?? ' ')) {
        inside += this.#text[this.#at + 1]!;
        this.#at += 2;
      } else {
        inside += character;
        this.#at++;
      }
    }
    this.#at++;
    return inside;
  }

  #variable(): string {
    const rest = this.#text.slice(this.#at);
    const plain = /^\$([A-Za-z_][A-Za-z0-9_]*)/.exec(rest);
    if (plain) {
      this.#at += plain[0].length;
      return this.#lookup(plain[1]!) ?? '';
    }
    const braced = /^\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+?])([^}]*))?\}/.exec(rest);
    if (!braced) {
      this.#at++;
      return '$';
    }
    this.#at += braced[0].length;
    return this.#choose(braced[1]!, braced[2], braced[3] ?? '');
  }

  #choose(name: string, operator: string | undefined, word: string): string {
    const value = this.#lookup(name);
    const set = operator?.startsWith(':') ? value !== undefined && value !== '' : value !== undefined;
    const expanded = () => expandWord(word, this.#lookup, this.#escape);
    if (operator?.endsWith('-')) return set ? value! : expanded();
    if (operator?.endsWith('+')) return set ? expanded() : '';
    if (operator?.endsWith('?') && !set) throw new Error(`${name}: ${expanded() || 'is not set'}`);
    return value ?? '';
  }
}
