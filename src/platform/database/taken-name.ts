import { conflict, notFound } from '#kernel/errors.ts';
import { brokenConstraint } from '#platform/database/index.ts';

/**
 * Returns a function that writes a name and answers 409 where another one of its kind has it: `table` has the constraint `<table>_name`, and
 * `others` says among what names differ, such as `role of the organization`. An organization that is deleted meanwhile is 404.
 */
export const takenNames =
  (table: string, others: string) =>
  async <T>(name: string, write: () => Promise<T>): Promise<T> => {
    try {
      return await write();
    } catch (error) {
      const constraint = brokenConstraint(error);
      if (constraint === `${table}_name`)
        throw conflict(`The name "${name}" is taken by another ${others}: choose another.`);
      if (constraint === `${table}_organization_id_fkey`) throw notFound('Organization');
      throw error;
    }
  };
