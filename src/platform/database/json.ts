import type { ColumnType } from 'kysely';

/** Type of a jsonb column: any value out, text in (`json(value)`), because the driver takes a JavaScript array for an SQL array. */
export type JsonColumn = ColumnType<any, string, string>;

/** Returns the text of a value for a jsonb column; undefined parts are left out as in JSON. */
export const json = (value: unknown): string => JSON.stringify(value);

/** Column of type bigint, read as a number (values stay below 2^53). */
export type Int8Column = ColumnType<number, number, number>;
