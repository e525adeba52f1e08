/** Part of a schema that names properties. */
interface Shape {
  properties?: Record<string, Shape>;
  additionalProperties?: boolean | Shape;
  items?: Shape;
  anyOf?: Shape[];
}

/** Keys and indexes that lead to a value. */
export type Path = (string | number)[];

/**
 * Removes unknown properties from a valid value, in place and at every depth, and returns their paths. All variants count together: the
 * value was checked, and one of them has it. An object without named properties stays as it is.
 */
export function prune(schema: object, value: unknown): Path[] {
  const removed: Path[] = [];
  pruneBy([schema], value, [], removed);
  return removed;
}

function pruneBy(schemas: Shape[], value: unknown, path: Path, removed: Path[]): void {
  if (value === null || typeof value !== 'object') return;
  const shapes = schemas.flatMap((schema) => schema.anyOf ?? [schema]);
  if (Array.isArray(value)) {
    const items = shapes.flatMap((shape) => shape.items ?? []);
    if (items.length > 0) value.forEach((item, at) => pruneBy(items, item, [...path, at], removed));
    return;
  }
  if (!shapes.some((shape) => shape.properties)) return;
  for (const [key, inner] of Object.entries(value)) {
    const known = shapes.flatMap((shape) => shapeOf(shape, key) ?? []);
    const at = [...path, key];
    if (known.length > 0) pruneBy(known, inner, at, removed);
    else {
      delete (value as Record<string, unknown>)[key];
      removed.push(at);
    }
  }
}

function shapeOf({ properties, additionalProperties }: Shape, key: string): Shape | undefined {
  if (properties && Object.hasOwn(properties, key)) return properties[key];
  if (typeof additionalProperties === 'object') return additionalProperties;
  return additionalProperties === true ? {} : undefined;
}

/** Returns whether a schema names the property at a path. */
export function hasProperty(schema: object, path: Path): boolean {
  let shapes: Shape[] = [schema];
  for (const step of path) {
    shapes = shapes.flatMap((shape) => shape.anyOf ?? [shape]);
    shapes = shapes.flatMap((shape) => (typeof step === 'number' ? shape.items : shapeOf(shape, step)) ?? []);
  }
  return shapes.length > 0;
}

/** Returns a path as messages write it: `ports[0].name`. */
export const pathText = (path: Path): string =>
  path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('');
