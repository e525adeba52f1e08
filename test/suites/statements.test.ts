import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { useApp } from '#test/harness/app.ts';
import { callExample, exampleOf, pageSizeOf } from './answers.ts';
import { makeWorld } from './world.ts';

const said = new Set<string>();
const app = useApp({}, {}, (text) => said.add(normalized(text)));

/** Returns a statement on one line, with lists of parameters shortened to one: the number of rows makes no difference. */
function normalized(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\$\d+/g, '$')
    .replaceAll(/\$(?:, \$)+/g, '$…')
    .replaceAll(/(\([^()]*\$[^()]*\))(?:, \([^()]*\$[^()]*\))+/g, '$1, …')
    .trim();
}

/** Statements on a tenant's table that name no organization, by a part of their text, each with the reason. */
const UNSCOPED: [part: RegExp, reason: string][] = [
  [
    /^select "expires_at" from "api_token" where "id" = \$ for key share$/,
    'the token that the request came with, which may be of another of its organizations',
  ],
  [
    /where "api_token"\."parent_id" = \$$/,
    'tokens end with the one that made them, in each organization in which it did',
  ],
  [/from "build_report" where "id" = \$ and "expires_at"/, 'the secret of the link is the credential of its reader'],
  [
    /from "organization" where "id" = (?:any\()?\$/,
    'the organization is what is asked for; its members are joined to it',
  ],
  [
    /from stream_state state/,
    'events are of the organizations in the list that is handed in; of the state there is one row',
  ],
  [
    /^select "id", "organization_id" from "service" where "kind" = \$ and spec ->> 'slug'/,
    'the slug says whose workflow it is',
  ],
  [/^select token\.id, token\.name, token\.secret_hash/, 'whose token it is says the token'],
  [/^select session\.id as session_id/, 'whose session it is says the session'],
  [/^select "invitation"\..* where "invitation"\."id" = \$$/, 'the secret of the link is the credential of its reader'],
  [
    /from "registry_webhook" inner join .* where "registry_webhook"\."id" = \$$/,
    'the secret of the webhook is the credential of the registry that calls',
  ],
  [
    /^select "organization_id" from "member" where "user_id" = \$/,
    'each organization of a person is told of their password',
  ],
  [
    /^update "member_invitation" set "secret_hash" = \$, "mail_secret_hash" = \$ where "invited_by" = \$$/,
    'links that a person sent end with their password, in each organization',
  ],
];

let tenant: Set<string>;
beforeAll(async () => {
  const world = await makeWorld(app);
  for (const route of allRoutes().filter((one) => one.method === 'GET')) {
    const example = exampleOf(world, route);
    await callExample(world.admin, world, route, example);
    const size = pageSizeOf(route);
    if (size === undefined) continue;
    // A page that may not be the last one has its total counted.
    const query = `${example.query ? `${example.query}&` : '?'}page=1&${size}=1`;
    await callExample(world.admin, world, route, { ...example, query });
  }
  for (const route of allRoutes().filter((one) => one.method === 'POST' || one.method === 'PUT'))
    await callExample(world.admin, world, route, exampleOf(world, route));
  for (const route of allRoutes().filter((one) => one.method === 'DELETE')) {
    const own = await makeWorld(app);
    await callExample(own.admin, own, route, exampleOf(own, route));
  }
  const columns = await app.database.pool.query<{ table_name: string }>(
    "select table_name from information_schema.columns where table_schema = 'public' and column_name = 'organization_id'",
  );
  tenant = new Set(columns.rows.map((row) => row.table_name));
}, 300_000);

/** Returns the tenant's tables that a statement reads or writes. */
const tablesOf = (text: string): string[] =>
  [...text.matchAll(/\b(?:from|join|update|into) "?(\w+)"?/gi)]
    .map((match) => match[1]!)
    .filter((name) => tenant.has(name));

/** Matches statements that compare the organization with a given value, or write it into a new row. */
const SCOPED = /organization_?id"? ?(?:=|in) ?(?:any ?)?\(?\$|^insert into "?\w+"? \([^)]*organization_id/i;

const isUnscoped = (text: string): boolean => tablesOf(text).length > 0 && !SCOPED.test(text);

describe('the statements that requests send', () => {
  test('are those of the snapshot: a change of them is seen in review', async () => {
    const list = [...said].sort();
    expect(list.length).toBeGreaterThan(100);
    await expect(`${list.join(';\n\n')};\n`).toMatchFileSnapshot('statements.snapshot.sql');
  });

  test("compare the organization with a given one wherever they touch a tenant's table", () => {
    const wrong = [...said].filter((text) => isUnscoped(text) && !UNSCOPED.some(([part]) => part.test(text)));
    expect(wrong.sort()).toEqual([]);
  });

  test('that need not are still sent', () => {
    const unused = UNSCOPED.filter(([part]) => ![...said].some((text) => isUnscoped(text) && part.test(text)));
    expect(unused).toEqual([]);
  });
});
