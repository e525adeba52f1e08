import { createHash } from 'node:crypto';

/** A stable id for what has none of its own: the same line has the same id whenever it is read. */
export function idOfLine(...parts: string[]): string {
  const hex = createHash('sha256').update(parts.join('\0')).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-9${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
