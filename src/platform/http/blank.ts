/** Part of a schema that says which fields may be blank. */
interface Shape {
  type?: string;
  format?: string;
  nullable?: boolean;
  blankIsAbsent?: boolean;
  properties?: Record<string, Shape>;
  required?: string[];
  items?: Shape;
  anyOf?: Shape[];
}

/** Rules of one object or list of a body, by field. */
export interface BlankRules {
  fields: [name: string, rule: { blank?: 'absent' | 'null'; inner?: BlankRules }][];
  items?: BlankRules;
}

/** Mark of an optional string that is no id and yet may be `""` or null for "absent". The document leaves it out. */
export const BLANK_IS_ABSENT = { blankIsAbsent: true } as const;

/**
 * Returns the rules of a body's schema, or undefined if no field may be blank. Existing clients send `""` and null for an optional id, tag
 * or commit that they do not have.
 */
export const blankRulesOf = (schema: object): BlankRules | undefined => rulesOf([schema]);

function rulesOf(schemas: Shape[]): BlankRules | undefined {
  const shapes = schemas.flatMap((schema) => schema.anyOf ?? [schema]);
  const items = rulesOfAny(shapes.flatMap((shape) => shape.items ?? []));
  const names = new Set(shapes.flatMap((shape) => Object.keys(shape.properties ?? {})));
  const fields = [...names].flatMap((name): BlankRules['fields'] => {
    const among = shapes.filter((shape) => shape.properties && Object.hasOwn(shape.properties, name));
    const variants = among.map((shape) => shape.properties![name]!);
    const optional = among.every((shape) => !shape.required?.includes(name));
    const blank = optional && variants.every(isBlankable) ? blankOf(variants) : undefined;
    const inner = rulesOfAny(variants);
    return blank || inner ? [[name, { ...(blank ? { blank } : {}), ...(inner ? { inner } : {}) }]] : [];
  });
  return fields.length > 0 || items ? { fields, ...(items ? { items } : {}) } : undefined;
}

const rulesOfAny = (schemas: Shape[]): BlankRules | undefined => (schemas.length > 0 ? rulesOf(schemas) : undefined);

const isBlankable = ({ type, format, blankIsAbsent }: Shape): boolean =>
  type === 'string' && (format === 'uuid' || blankIsAbsent === true);

const blankOf = (variants: Shape[]): 'absent' | 'null' => (variants.every((one) => one.nullable) ? 'null' : 'absent');

/** Applies the rules to a body, in place: a blank field goes, or becomes null where null clears the stored value. */
export function dropBlank(rules: BlankRules, value: unknown): void {
  if (value === null || typeof value !== 'object') return;
  if (Array.isArray(value)) {
    if (rules.items) for (const item of value) dropBlank(rules.items, item);
    return;
  }
  const record = value as Record<string, unknown>;
  for (const [name, { blank, inner }] of rules.fields) {
    if (!Object.hasOwn(record, name)) continue;
    const given = record[name];
    if (blank === 'null' && given === '') record[name] = null;
    else if (blank === 'absent' && (given === '' || given === null)) delete record[name];
    else if (inner) dropBlank(inner, given);
  }
}
