import type { Base } from '#app/install.ts';

/** The id of the organization with that id or name; of the only one there is where none is named. Throws with a list of them. */
export async function chooseOrganization({ platform }: Base, wanted: string | undefined): Promise<string> {
  const all = await platform.db.selectFrom('organization').select(['id', 'name']).orderBy('created_at').execute();
  const found = wanted ? all.filter(({ id, name }) => id === wanted || name === wanted) : all;
  if (found.length === 1) return found[0]!.id;
  if (all.length === 0) throw new Error('There is no organization yet: `npm start` makes the first one.');
  const names = all.map(({ id, name }) => `  ${id}  ${name}`).join('\n');
  throw new Error(
    `${wanted ? `There is no organization ${wanted}` : 'There are several organizations'}: name one with --organization.\n${names}`,
  );
}
