/** What of a schema says which properties there are. */
interface Shape {
  properties?: Record<string, Shape>;
  additionalProperties?: boolean | Shape;
  items?: Shape;
  anyOf?: Shape[];
}

/**
 * Takes out of a valid value, in place, the properties that its schema does not name, at every depth. Of variants all are taken
 * together: the value was checked, and one of them has it. An object without named properties stays as it is.
 */
export function prune(schema: object, value: unknown): void {
  pruneBy([schema], value);
}

function pruneBy(schemas: Shape[], value: unknown): void {
  if (value === null || typeof value !== 'object') return;
  const shapes = schemas.flatMap((schema) => schema.anyOf ?? [schema]);
  if (Array.isArray(value)) {
    const items = shapes.flatMap((shape) => shape.items ?? []);
    if (items.length > 0) for (const item of value) pruneBy(items, item);
    return;
  }
  if (!shapes.some((shape) => shape.properties)) return;
  for (const [key, inner] of Object.entries(value)) {
    const known = shapes.flatMap((shape) => shapeOf(shape, key) ?? []);
    if (known.length === 0) delete (value as Record<string, unknown>)[key];
    else pruneBy(known, inner);
  }
}

function shapeOf({ properties, additionalProperties }: Shape, key: string): Shape | undefined {
  if (properties && Object.hasOwn(properties, key)) return properties[key];
  if (typeof additionalProperties === 'object') return additionalProperties;
  return additionalProperties === true ? {} : undefined;
}
