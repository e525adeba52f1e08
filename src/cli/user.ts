import { withBase } from '#cli/base.ts';
import { print, printAside } from '#cli/print.ts';
import { printTable } from '#cli/table.ts';
import { displayName } from '#platform/access/people.ts';
import { systemContext } from '#platform/context.ts';
import { signInPage } from '#platform/settings/address.ts';
import type { Settings } from '#platform/settings/index.ts';
import { listPeople, makeLink, removePassword, signOut } from '#resources/sign-in/index.ts';

type Person = Awaited<ReturnType<typeof listPeople>>[number];

/** Prints the people of the installation as a table. */
export async function listUsersCommand(settings: Settings): Promise<void> {
  const people = await withBase(settings, ({ platform }) => listPeople(platform.db));
  const rows = people.map((person) => [
    person.id,
    displayName(person),
    waysOf(person),
    person.organizations ?? '',
    person.last_activity_at?.toISOString() ?? 'never',
  ]);
  printTable([['ID', 'SHOWN AS', 'SIGNS IN', 'ORGANIZATIONS', 'LAST SEEN'], ...rows]);
}

/** Says how a person signs in. */
function waysOf({ sign_in_name: name, subject, sessions }: Person): string {
  if (name !== null) return `as ${name} (sessions: ${sessions})`;
  return subject === null ? 'not yet' : `at ${subject.split('|')[0]}`;
}

/** Prints a one-time link by which a person sets name and password; nothing of it is stored in the clear. */
export async function makeUserLinkCommand(settings: Settings, wanted: string): Promise<void> {
  if (!settings.passwords)
    throw new Error(
      'This installation takes no passwords: a link would lead nowhere. Start it with QUARTERDECK_PASSWORDS=true first.',
    );
  const { person, link } = await withBase(settings, async ({ platform }) => {
    const found = choosePerson(await listPeople(platform.db), wanted);
    return { person: found, link: await makeLink(systemContext(platform, 'quarterdeck user'), found.id) };
  });
  printAside(
    `Link for ${displayName(person)}, once, until ${link.expiresAt.toISOString()}. Whoever opens it can do everything that they may:`,
  );
  print(link.url);
  if (!settings.baseUrl) printAside(`QUARTERDECK_BASE_URL is not set: the link leads to ${signInPage(settings)}.`);
}

/** Ends the sessions of a person, and their password where that is asked for. */
export async function signOutUserCommand(
  settings: Settings,
  wanted: string,
  options: { removePassword?: true },
): Promise<void> {
  const { person, ended } = await withBase(settings, async ({ platform }) => {
    const found = choosePerson(await listPeople(platform.db), wanted);
    const context = systemContext(platform, 'quarterdeck user');
    const count = await signOut(context, found.id);
    if (options.removePassword) await removePassword(context, found.id);
    return { person: found, ended: count };
  });
  print(
    `Ended the sessions of ${displayName(person)}: ${ended}.${options.removePassword ? ' Their password is removed.' : ''} Their API tokens stay: \`quarterdeck token list\`.`,
  );
}

/** Returns the person with that id, name to sign in with, address or nickname. Throws with a list of them where it is not one. */
function choosePerson(people: Person[], wanted: string): Person {
  const text = wanted.toLowerCase();
  const byName = people.filter(({ sign_in_name: name }) => name?.toLowerCase() === text);
  const found =
    byName.length === 1
      ? byName
      : people.filter(({ id, email, nickname }) => [id, email, nickname].some((one) => one?.toLowerCase() === text));
  if (found.length === 1) return found[0]!;
  const names = (found.length > 1 ? found : people)
    .map((person) => `  ${person.id}  ${displayName(person)}`)
    .join('\n');
  throw new Error(
    `${found.length > 1 ? `There are several people ${wanted}` : `There is nobody ${wanted}`}: name one by id.\n${names}`,
  );
}
