/** An answer that is a file: a handler returns one where `answer.contentType` says what kind. */
export class FileAnswer {
  /** Under which it is saved; letters, digits, dots and dashes. */
  readonly name: string;
  readonly bytes: Buffer;

  constructor(name: string, bytes: Buffer) {
    this.name = name;
    this.bytes = bytes;
  }
}
