import { parseJson } from './json.ts';

interface Shape {
  readsTexts?: boolean;
  type?: string;
  properties?: Record<string, Shape>;
}

/** Mark of a body whose fields may come as text: existing clients send `"2"` for 2. The document leaves it out. */
export const READS_TEXTS = { readsTexts: true } as const;

/** Reads the texts of a marked body as the type of their field, in place; a text that is none of that type stays and is refused. */
export function readTexts(schema: object, value: unknown): void {
  const { readsTexts, properties = {} } = schema as Shape;
  if (!readsTexts || value === null || typeof value !== 'object') return;
  const record = value as Record<string, unknown>;
  for (const [key, given] of Object.entries(record))
    if (typeof given === 'string' && Object.hasOwn(properties, key)) record[key] = read(given, properties[key]!.type);
}

function read(text: string, type: string | undefined): unknown {
  if (type === undefined || type === 'string') return text;
  if (type === 'integer' || type === 'number') return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return parsed(text);
}

/** Returns the list or object that came as the text of its JSON. */
function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // What is wrong is said of the text as it came.
    return text;
  }
}
