/**
 * Parser of the engine's build progress. The stream is a JSON object per line: plain text from the classic builder; from BuildKit
 * `moby.buildkit.trace` with a protobuf message in base64, of which steps and output are read.
 */
export class BuildProgress {
  /** Error of the engine, if the build failed. */
  error: string | null = null;
  readonly #log: (line: string) => void;
  readonly #onPart: (id: string, status: string) => void;
  readonly #started = new Set<string>();
  readonly #finished = new Set<string>();
  readonly #partial = new Map<string, string>();
  #rest = '';

  /** `onPart` receives the status of single layers while an image is pulled. */
  constructor(log: (line: string) => void, onPart: (id: string, status: string) => void = () => undefined) {
    this.#log = log;
    this.#onPart = onPart;
  }

  write(part: string): void {
    const lines = (this.#rest + part).split('\n');
    this.#rest = lines.pop()!;
    for (const line of lines) this.#message(line);
  }

  end(): void {
    this.#message(this.#rest);
    this.#rest = '';
    for (const text of this.#partial.values()) if (text !== '') this.#log(text);
    this.#partial.clear();
  }

  #message(line: string): void {
    if (line.trim() === '') return;
    const message = JSON.parse(line) as {
      stream?: string;
      status?: string;
      error?: string;
      id?: string;
      aux?: unknown;
    };
    if (message.error !== undefined) this.error = message.error;
    else if (message.id === 'moby.buildkit.trace') this.#trace(Buffer.from(message.aux as string, 'base64'));
    else if (message.stream !== undefined) this.#text('', message.stream);
    else if (message.status !== undefined && message.id === undefined) this.#log(message.status);
    else if (message.status !== undefined) this.#onPart(message.id!, message.status);
  }

  #trace(bytes: Buffer): void {
    for (const field of readFields(bytes)) {
      if (field.number === 1) this.#vertex(field.bytes);
      if (field.number === 3) this.#output(field.bytes);
    }
  }

  /** A step: digest 1, name 3, cached 4, started 5, completed 6, error 7. */
  #vertex(bytes: Buffer): void {
    const fields = new Map(readFields(bytes).map((field) => [field.number, field]));
    const text = (number: number) => fields.get(number)?.bytes.toString('utf8') ?? '';
    const [digest, name] = [text(1), text(3)];
    if (fields.has(5) && !this.#started.has(digest)) {
      this.#started.add(digest);
      this.#log(name);
    }
    if (!fields.has(6) || this.#finished.has(digest)) return;
    this.#finished.add(digest);
    if (fields.get(4)?.value) this.#log(`${name}: unchanged, from the cache`);
    if (text(7) !== '') this.#log(`${name}: ${text(7)}`);
  }

  /** Output of a step: digest 1, bytes 4. */
  #output(bytes: Buffer): void {
    const fields = readFields(bytes);
    const digest = fields.find((field) => field.number === 1)?.bytes.toString('utf8') ?? '';
    const output = fields.find((field) => field.number === 4)?.bytes.toString('utf8') ?? '';
    this.#text(digest, output);
  }

  #text(step: string, text: string): void {
    const lines = ((this.#partial.get(step) ?? '') + text).split('\n');
    this.#partial.set(step, lines.pop()!);
    for (const line of lines.filter((each) => each.trim() !== '')) this.#log(line.replace(/\r$/, ''));
  }
}

interface Field {
  number: number;
  /** Value of a number field. */
  value: number;
  /** Content of a text, bytes or message field. */
  bytes: Buffer;
}

/** Decodes the fields of a protobuf message (varint and length-delimited ones; those of fixed size are skipped). */
export function readFields(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++];
      if (byte === undefined) throw new Error('protobuf message is cut short');
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const field: Field = { number: key >>> 3, value: 0, bytes: Buffer.alloc(0) };
    const type = key & 7;
    if (type === 0) field.value = varint();
    else if (type === 2) {
      const length = varint();
      field.bytes = message.subarray(at, (at += length));
    } else at += type === 1 ? 8 : 4;
    fields.push(field);
  }
  return fields;
}
