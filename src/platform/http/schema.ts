import { Type, type Static, type TObject, type TProperties, type TSchema } from 'typebox';

export { Type, type Static, type TObject, type TSchema };

/** Gives a schema the name under which it stands in the document's components. */
export const named = <T extends TSchema>(name: string, schema: T): T => ({ ...schema, title: name });

/** Pattern of a lower-case UUID (docs/contributing/rules.md 8). */
export const UUID_PATTERN = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';
export const Uuid = Type.String({ format: 'uuid', pattern: UUID_PATTERN });

/** Schema of an id whose refusal says which operation lists the records that it may name. */
export const UuidOf = (record: string, listedBy: string) =>
  Type.String({ ...Uuid, listed: `the id of ${record}; ${listedBy} lists them` });

/** RFC 3339 with milliseconds and `Z` in answers; any offset in requests. */
export const DateTime = Type.String({ format: 'date-time' });

/** Schema of a set of values. Unlike TypeBox's own it says `type: string`, which OpenAPI's readers want. */
export const OneOf = <const V extends readonly string[]>(values: V, options: object = {}) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...options });

/** OpenAPI 3.0's way to say that a value may be null; validators and serialisers understand it as well. */
export const Nullable = <T extends TSchema>(schema: T) => {
  const { title: _title, ...rest } = schema as T & { title?: string };
  const values = (schema as { enum?: unknown[] }).enum;
  return Type.Unsafe<Static<T> | null>({ ...rest, nullable: true, ...(values ? { enum: [...values, null] } : {}) });
};

/** An object schema's properties, all optional. */
export const Optional = Type.Optional;

/** Joins the properties of several objects into one (OpenAPI's `allOf`, resolved). Later ones win. */
export const Merge = <A extends TProperties, B extends TProperties>(a: TObject<A>, b: TObject<B>) => {
  const properties = { ...a.properties, ...b.properties } as Omit<A, keyof B> & B;
  return Type.Object(properties);
};

/** Schema of a record that a caller names by id only. */
export const Reference = named('Reference', Type.Object({ id: Uuid }));

/** Pattern of a name: a visible character, and no control characters, because lists, logs and terminals show one name to a line. */
export const NAME_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]*\\S[^\\u0000-\\u001f\\u007f-\\u009f]*$';

/** Schema of a name: any spelling, without outer blanks, compared without case (docs/contributing/rules.md 8). */
export const Name = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: NAME_PATTERN,
  description: 'Compared without case; outer blanks are dropped.',
});

export const Pagination = named(
  'Pagination',
  Type.Object({
    page: Type.Integer(),
    page_size: Type.Integer(),
    total_count: Type.Integer(),
    total_pages: Type.Integer(),
  }),
);

/** Number of the last page: its offset must be a number that PostgreSQL can count to. */
const MAX_PAGE = 1_000_000_000;

/** Query of a list (docs/contributing/rules.md 4). */
export const PageQuery = Type.Object({
  page: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE,
      description: 'Page to answer, from 1. Without page and page_size the whole list is answered.',
    }),
  ),
  page_size: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: 'Records on a page, 20 when only page is given.' }),
  ),
});
export type PageQuery = Static<typeof PageQuery>;

/** `{results, pagination}` of a kind of record. */
export const ListOf = <T extends TSchema>(item: T) => {
  const schema = Type.Object({ results: Type.Array(item), pagination: Pagination });
  const title = (item as { title?: string }).title;
  return title ? named(`${title}List`, schema) : schema;
};

/** `{results}` of a list that has no pages (docs/contributing/rules.md, *Pagination*). */
export const PlainListOf = <T extends TSchema>(item: T) => Type.Object({ results: Type.Array(item) });

export const ErrorBody = named(
  'Error',
  Type.Object({
    status: Type.Integer(),
    error: Type.String({ description: 'Standard reason phrase of the status.' }),
    message: Type.String({ description: 'What is wrong, and what would be right.' }),
    detail: Type.String({ description: 'The message again, for clients that read this name.' }),
    errors: Type.Optional(Type.Array(Type.Object({ field: Type.String(), message: Type.String() }))),
    request_id: Type.Optional(Type.String()),
  }),
);
