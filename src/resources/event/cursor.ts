import { invalidField } from '#kernel/errors.ts';
import { isId } from '#kernel/ids.ts';

/** Position of an event in the list: its time in microseconds since 1970, and its id among those of the same time. */
export interface Cursor {
  micros: number;
  id: string;
}

/** Returns the token of a position; opaque to clients. */
export const writeCursor = (cursor: Cursor): string =>
  Buffer.from(`${cursor.micros} ${cursor.id}`).toString('base64url');

/** Reads a token of a position. Throws 400 naming the field. */
export function readCursor(field: string, token: string): Cursor {
  const [micros = '', id = ''] = Buffer.from(token, 'base64url').toString().split(' ');
  if (!/^-?\d{1,16}$/.test(micros) || !isId(id))
    throw invalidField(field, 'must be a token out of `links` of an answer of this list');
  return { micros: Number(micros), id };
}
