import { AppError } from '#kernel/errors.ts';
import { hasProperty, pathText, type Path } from '#platform/http/prune.ts';
import type { Route } from '#platform/http/route.ts';

/** Fields that a refusal names. */
const MOST = 20;
/** Characters of a field's path in a warning. */
const LONGEST = 200;

/**
 * Warns of each field of a body that the operation ignores. Fields that only its answer has are no mistake: clients send back what they have
 * read. Throws 400 where the route refuses unknown fields.
 */
export function ignoredFields(route: Route, unknown: Path[]): string[] {
  const { body: answer } = route.answer;
  const ignored = unknown.filter((path) => !(answer && hasProperty(answer, path)));
  if (ignored.length > 0 && route.refusesUnknownFields) {
    const errors = ignored
      .slice(0, MOST)
      .map((path) => ({ field: pathText(path), message: 'is no field of this request' }));
    throw new AppError('bad_request', errors.map(({ field, message }) => `${field}: ${message}`).join('; '), {
      errors,
    });
  }
  return ignored.map((path) => `${pathText(path).slice(0, LONGEST)}: is no field of this request and is ignored`);
}

/** Warns of each parameter of a query that the operation ignores. */
export const ignoredParameters = (unknown: Path[]): string[] =>
  unknown.map((path) => `${pathText(path).slice(0, LONGEST)}: is no query parameter of this operation and is ignored`);
