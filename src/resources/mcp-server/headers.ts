import { badRequest, type FieldError } from '#kernel/errors.ts';

/** Headers of a request to an MCP server, by the names that its owner wrote. */
export type Headers = Record<string, string>;

/** A field name and a field value of HTTP (RFC 9110 §5.1, §5.5), of one line and in Latin 1. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Headers that the connection itself sets: given by hand they could change where a request ends or its recipient. */
const OF_THE_CONNECTION = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Throws 400 for headers that can't be sent; the values, which are credentials, stand in no message. */
export function checkHeaders(headers: Headers): void {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  const refuse = (name: string, message: string) => errors.push({ field: `headers.${name}`, message });
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (!NAME.test(name)) refuse(name, 'must be the name of an HTTP header, of letters, digits and -');
    else if (OF_THE_CONNECTION.includes(lower)) refuse(name, 'is set by the connection: leave it out');
    else if (seen.has(lower)) refuse(name, 'is given twice: names are compared without case');
    if (!VALUE.test(value)) refuse(name, 'must be one line of printable Latin 1 characters');
    seen.add(lower);
  }
  if (errors.length > 0) throw badRequest(errors.map((one) => `${one.field}: ${one.message}`).join('; '), errors);
}
