import { StringDecoder } from 'node:string_decoder';

/** Sample of a metric. */
export interface MetricSample {
  name: string;
  labels: Map<string, string>;
  value: number;
}

/** Bytes of a text of metrics that are read at most. A gateway with 2,000 services that all have requests has some 20 MB. */
const MOST_BYTES = 64 * 2 ** 20;
/** Characters of a line at most. */
const MOST_CHARACTERS = 16_384;

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)/y;
const ESCAPED: Record<string, string> = { '\\n': '\n', '\\\\': '\\', '\\"': '"' };

/** Parses a line in the text form of Prometheus; null unless it is a sample. */
export function parseSample(line: string): MetricSample | null {
  const [, name, text = '', number] = SAMPLE.exec(line) ?? [];
  if (name === undefined) return null;
  const labels = parseLabels(text);
  const value = parseNumber(number!);
  return labels === null || Number.isNaN(value) ? null : { name, labels, value };
}

/** Parses the labels between braces; null if they are not well-formed. */
function parseLabels(text: string): Map<string, string> | null {
  const labels = new Map<string, string>();
  const { length } = text.trimEnd();
  for (LABEL.lastIndex = 0; LABEL.lastIndex < length;) {
    const [, label, value] = LABEL.exec(text) ?? [];
    if (label === undefined) return null;
    labels.set(
      label,
      value!.replace(/\\./g, (escaped) => ESCAPED[escaped] ?? escaped),
    );
  }
  return labels;
}

const INFINITIES: Record<string, number> = { '+Inf': Infinity, Inf: Infinity, '-Inf': -Infinity };

/** Returns the number of a sample or of the label `le`; NaN for anything else. */
export const parseNumber = (text: string): number =>
  INFINITIES[text] ?? (/^[+-]?[\d.]{1,40}(?:[eE][+-]?\d{1,3})?$/.test(text) ? Number(text) : Number.NaN);

/** Yields the samples of metrics whose names begin as given. Throws for a text that is too long, or has a line that is no sample. */
export async function* readSamples(stream: AsyncIterable<Buffer>, prefixes: string[]): AsyncGenerator<MetricSample> {
  const isWanted = (line: string) => prefixes.some((prefix) => line.startsWith(prefix));
  for await (const line of readLines(stream)) {
    if (!isWanted(line)) continue;
    const sample = parseSample(line);
    if (!sample) throw new Error(`it has the line ${JSON.stringify(line.slice(0, 80))}, which is no metric`);
    yield sample;
  }
}

async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder();
  let left = '';
  let bytes = 0;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES / 2 ** 20} MiB`);
    const lines = (left + decoder.write(part)).split('\n');
    left = lines.pop()!;
    if (left.length > MOST_CHARACTERS) throw new Error(`it has a line of more than ${MOST_CHARACTERS} characters`);
    yield* lines;
  }
  if (left !== '') yield left;
}
