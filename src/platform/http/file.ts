import type { Readable } from 'node:stream';

/** Answer that is a file: a handler returns one if `answer.contentType` names its type. */
export class FileAnswer {
  /** Name under which it is saved; letters, digits, dots and dashes. */
  readonly name: string;
  /** Content, as a stream where it is long. */
  readonly content: Buffer | Readable;

  constructor(name: string, content: Buffer | Readable) {
    this.name = name;
    this.content = content;
  }
}
