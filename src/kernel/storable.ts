/** Replaces what PostgreSQL keeps in no text: NUL, and halves of surrogate pairs, which text that was cut has. For what workloads and engines say. */
export const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed();
