/**
 * Replaces characters that PostgreSQL keeps in no text: NUL, and halves of surrogate pairs, which truncated text has. For output of
 * workloads and engines.
 */
export const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed();
