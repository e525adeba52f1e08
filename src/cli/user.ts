import { withBase } from '#cli/base.ts';
import { print, printAside } from '#cli/print.ts';
import { printTable } from '#cli/table.ts';
import { displayName, issuerOf } from '#platform/access/people.ts';
import { systemContext, type Platform } from '#platform/context.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { isMailAddress } from '#platform/mail-client/index.ts';
import { sendsMail } from '#platform/mail-queue/index.ts';
import { signInPage } from '#platform/settings/address.ts';
import type { Settings } from '#platform/settings/index.ts';
import { isUuid } from '#platform/settings/organization-rules.ts';
import { dropPasskey, listPasskeys, listPeople, makeLinkFor, setAddress, signOut } from '#resources/sign-in/index.ts';

type Person = Awaited<ReturnType<typeof listPeople>>[number];

/** Prints the people of the installation as a table. */
export async function listUsersCommand(settings: Settings): Promise<void> {
  const people = await withBase(settings, ({ platform }) => listPeople(platform.db));
  const rows = people.map((person) => [
    person.id,
    displayName(person),
    waysOf(person),
    person.recovery_email ?? '',
    person.organizations ?? '',
    person.last_activity_at?.toISOString() ?? 'never',
  ]);
  printTable([['ID', 'SHOWN AS', 'SIGNS IN', 'LINKS GO TO', 'ORGANIZATIONS', 'LAST SEEN'], ...rows]);
}

/** Says how a person signs in. */
function waysOf({ sign_in_name: name, subject, sessions, passkeys }: Person): string {
  const keys = passkeys === 0 ? '' : `, passkeys: ${passkeys}`;
  if (name !== null) return `as ${name} (sessions: ${sessions}${keys})`;
  const issuer = issuerOf(subject);
  return issuer === null ? 'not yet' : `at ${issuer}`;
}

/** Prints a one-time link by which a person sets name and password, or a passkey; nothing of it is stored in the clear. */
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

/** Sets the address that links for a forgotten password are mailed to; without one there are no such links. */
export async function setAddressCommand(
  settings: Settings,
  wanted: string,
  address: string | undefined,
): Promise<void> {
  if (address !== undefined && !isMailAddress(address))
    throw new Error(`${address} must be one e-mail address such as ada@example.com.`);
  const found = await withBase(settings, async ({ platform }) => {
    const person = choosePerson(await listPeople(platform.db), wanted);
    if (!(await setAddress(systemContext(platform, 'quarterdeck user'), person.id, address ?? null)))
      throw new Error(
        `${displayName(person)} does not sign in here yet: make a link by \`quarterdeck user link\` first, and set the address once it was used.`,
      );
    return person;
  });
  print(`Links for ${displayName(found)} go to ${address ?? 'no address'}.`);
  if (address !== undefined && !sendsMail(settings))
    printAside('No mail is sent: set QUARTERDECK_SMTP_URL and QUARTERDECK_SMTP_FROM.');
}

/** Prints the passkeys of a person as a table, or removes one. */
export async function passkeysCommand(settings: Settings, wanted: string, options: { remove?: string }): Promise<void> {
  const { person, passkeys, removed } = await withBase(settings, async ({ platform }) => {
    const found = choosePerson(await listPeople(platform.db), wanted);
    const { remove } = options;
    const name = remove === undefined ? undefined : await removeFor(platform, found, remove.toLowerCase());
    return { person: found, passkeys: await listPasskeys(platform.db, found.id), removed: name };
  });
  if (removed !== undefined)
    print(
      `Removed the passkey ${removed} of ${displayName(person)}, and ended their sessions. ${passkeys.length > 0 ? `Passkeys left: ${passkeys.length}.` : 'They have no passkey left: without a password they need `quarterdeck user link`.'}`,
    );
  else if (passkeys.length === 0) print(`${displayName(person)} has no passkeys.`);
  else
    printTable([
      ['ID', 'NAME', 'SITE', 'MADE', 'LAST USED'],
      ...passkeys.map((one) => [
        one.id,
        one.name,
        one.rp_id,
        one.created_at.toISOString(),
        one.last_used_at?.toISOString() ?? 'never',
      ]),
    ]);
}

async function removeFor(platform: Platform, person: Person, id: string): Promise<string> {
  const context = systemContext(platform, 'quarterdeck user');
  const name = isUuid(id) ? await dropPasskey(context, person.id, id) : undefined;
  if (name === undefined)
    throw new Error(
      `${displayName(person)} has no passkey "${id}": \`quarterdeck user passkeys ${person.id}\` lists their ids.`,
    );
  return name;
}

/** Ends the sessions of a person, and removes their password and passkeys where that is asked for. */
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
    `Ended the sessions of ${displayName(person)}: ${ended}.${options.removePassword ? ' Their password and passkeys are removed.' : ''} The links of their invitations end, too. Their API tokens stay: \`quarterdeck token list\`.`,
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
