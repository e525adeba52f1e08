import pg from 'pg';

interface Part {
  table: string;
  kind: 'column' | 'constraint' | 'index' | 'trigger';
  text: string;
}

/** Query for tables without partitions, which depend on the day. */
const TABLES = `
  select c.oid, c.relname::text as name, pg_get_partkeydef(c.oid) as partitioned
  from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`;

const PARTS = `
  with tables as (${TABLES})
  select * from (
    select t.name as "table", 'column' as kind, a.attnum as place,
      quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
        || case when a.attnotnull then ' not null' else '' end
        || case when a.attidentity <> '' then ' generated as identity'
             when a.attgenerated = 's' then ' generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
             when d.adbin is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid) else '' end as text
    from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    union all
    select t.name, 'constraint', 0, 'constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
    from tables t join pg_constraint k on k.conrelid = t.oid and k.contype <> 'n'
    union all
    select t.name, 'index', 0, pg_get_indexdef(i.indexrelid)
    from tables t join pg_index i on i.indrelid = t.oid
    where not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid and k.conrelid = t.oid and k.contype in ('p', 'u', 'x'))
    union all
    select t.name, 'trigger', 0, pg_get_triggerdef(g.oid)
    from tables t join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
  ) part order by "table" collate "C", array_position(array['column', 'constraint', 'index', 'trigger'], kind), place, text collate "C"`;

const FUNCTIONS = `
  select pg_get_functiondef(p.oid) as text from pg_proc p
  where p.pronamespace = 'public'::regnamespace and p.prokind in ('f', 'p')
    and not exists (select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  order by p.proname collate "C", pg_get_function_identity_arguments(p.oid) collate "C"`;

const TYPES = `
  select format('create type %I as enum (%s);', t.typname, string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder)) as text
  from pg_type t join pg_enum e on e.enumtypid = t.oid where t.typnamespace = 'public'::regnamespace
  group by t.typname order by t.typname collate "C"`;

/** Returns the schema of a database as text, as in migrations/schema.sql. Equal migrations produce equal text. */
export async function listSchema(config: pg.ClientConfig): Promise<string> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    const tables = (await client.query<{ name: string; partitioned: string | null }>(TABLES)).rows;
    const parts = (await client.query<Part>(PARTS)).rows;
    const types = (await client.query<{ text: string }>(TYPES)).rows;
    const functions = (await client.query<{ text: string }>(FUNCTIONS)).rows;
    const names = tables.sort((a, b) => (a.name < b.name ? -1 : 1));
    return [
      '-- What the migrations make, for reading and for the test that compares it; written by `npm run gen`.\n',
      ...types.map(({ text }) => `${text}\n`),
      ...names.map(({ name, partitioned }) => tableText(name, partitioned, parts)),
      ...functions.map(({ text }) => `${text.trim()};\n`),
    ].join('\n');
  } finally {
    await client.end();
  }
}

function tableText(name: string, partitioned: string | null, parts: Part[]): string {
  const of = (...kinds: Part['kind'][]) =>
    parts.filter((part) => part.table === name && kinds.includes(part.kind)).map((part) => part.text);
  const body = of('column', 'constraint').map((text) => `  ${text}`);
  const end = partitioned ? `) partition by ${partitioned.toLowerCase()};` : ');';
  const after = of('index', 'trigger').map((text) => `${text};`);
  return [`create table ${name} (`, body.join(',\n'), end, ...after, ''].join('\n');
}
