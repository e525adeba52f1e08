import { withBase } from '#cli/base.ts';
import { print, printAside } from '#cli/print.ts';
import { printTable } from '#cli/table.ts';
import { displayName, issuerOf } from '#platform/access/people.ts';
import { systemContext } from '#platform/context.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { signInPage } from '#platform/settings/address.ts';
import type { Settings } from '#platform/settings/index.ts';
import { listPeople, makeLinkFor, signOut } from '#resources/sign-in/index.ts';

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
  const issuer = issuerOf(subject);
  return issuer === null ? 'not yet' : `at ${issuer}`;
}

/** Prints a one-time link by which a person sets name and password; nothing of it is stored in the clear. */
export async function makeUserLinkCommand(settings: Settings, wanted: string): Promise<void> {
  if (!takesPasswords(settings))
    throw new Error(
      'This installation takes no passwords: a link would lead nowhere. Start it with QUARTERDECK_PASSWORDS=true first.',
    );
  const { person, link } = await withBase(settings, async ({ platform }) => {
    const found = choosePerson(await listPeople(platform.db), wanted);
    const context = systemContext(platform, 'quarterdeck user');
    return { person: found, link: await makeLinkFor(context, found.id) };
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
    const count = await signOut(context, found.id, options.removePassword === true);
    return { person: found, ended: count };
  });
  print(
    `Ended the sessions of ${displayName(person)}: ${ended}.${options.removePassword ? ' Their password is removed.' : ''} The links of their invitations end, too. Their API tokens stay: \`quarterdeck token list\`.`,
  );
}

/** Returns the person with that id, or the only one with that name to sign in with, address or nickname. Throws with a list otherwise. */
function choosePerson(people: Person[], wanted: string): Person {
  const text = wanted.toLowerCase();
  const byId = people.find(({ id }) => id === text);
  if (byId) return byId;
  const found = people.filter(({ sign_in_name: name, email, nickname }) =>
    [name, email, nickname].some((one) => one?.toLowerCase() === text),
  );
  if (found.length === 1) return found[0]!;
  const names = (found.length > 1 ? found : people).map(
    (person) => `  ${person.id}  ${displayName(person)}, ${waysOf(person)}`,
  );
  throw new Error(
    `${found.length > 1 ? `There are several people ${wanted}` : `There is nobody ${wanted}`}: name one by id.\n${names.join('\n')}`,
  );
}
