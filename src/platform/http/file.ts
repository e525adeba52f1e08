import type { Readable } from 'node:stream';

/** An answer that is a file: a handler returns one where `answer.contentType` says what kind. */
export class FileAnswer {
  /** Under which it is saved; letters, digits, dots and dashes. */
  readonly name: string;
  /** Content, as a stream where it is long. */
  readonly content: Buffer | Readable;

  constructor(name: string, content: Buffer | Readable) {
    this.name = name;
    this.content = content;
  }
}
