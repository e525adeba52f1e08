import type pg from 'pg';
import { UNFINISHED_RESTORE } from '#platform/database/migrate.ts';
import { BackupRefused, type PartitionDump, type SequenceDump } from '#platform/backup/format.ts';

/** Tables whose rows are not dumped: the migrations of the restoring release make them. */
const NOT_DUMPED = ['schema_migration', UNFINISHED_RESTORE];

export interface CatalogTable {
  name: string;
  partitioned: boolean;
  columns: string[];
}

/** Returns the condition that an object does not belong to an extension. */
const own = (catalog: string, oid: string) =>
  `not exists (select from pg_depend d where d.classid = '${catalog}'::regclass and d.objid = ${oid} and d.deptype = 'e')`;

/**
 * Lists the tables with rows of the program, by name; partitions are part of theirs. Generated columns are left out: they cannot be
 * written.
 */
export async function listTables(client: pg.ClientBase): Promise<CatalogTable[]> {
  const { rows } = await client.query<CatalogTable>(
    `select c.relname::text as name, c.relkind = 'p' as partitioned,
      array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and a.attgenerated = '' order by a.attnum) as columns
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> all($1) and ${own('pg_class', 'c.oid')}
    order by c.relname collate "C"`,
    [NOT_DUMPED],
  );
  return rows;
}

const RANGE = /^FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)$/;

/** Range partitions. Throws for a kind of partition that a restore could not make again. */
export async function listPartitions(client: pg.ClientBase): Promise<PartitionDump[]> {
  const { rows } = await client.query<{ name: string; of: string; bound: string }>(
    `select c.relname::text as name, p.relname::text as of, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
    where c.relispartition and c.relnamespace = current_schema()::regnamespace and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    order by 2, 1`,
  );
  return rows.map(({ bound, ...partition }) => {
    const [, from, to] = RANGE.exec(bound) ?? [];
    if (!from || !to) throw new BackupRefused(`The partition ${partition.name} cannot be dumped: ${bound}.`);
    return { ...partition, from, to };
  });
}

/** Lists the positions of the sequences. Sequences know no transactions: read them after the rows, so that none is behind its table. */
export async function listSequences(client: pg.ClientBase): Promise<SequenceDump[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname::text as name from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'S' and ${own('pg_class', 'c.oid')}
    order by c.relname collate "C"`,
  );
  const sequences: SequenceDump[] = [];
  for (const { name } of rows) {
    const found = await client.query<{ value: string; called: boolean }>(
      `select last_value::text as value, is_called as called from ${client.escapeIdentifier(name)}`,
    );
    sequences.push({ name, ...found.rows[0]! });
  }
  return sequences;
}

export interface ForeignKey {
  table: string;
  name: string;
  definition: string;
}

/** Foreign keys as they are declared; those that partitions have from their parents are left out. */
export async function listForeignKeys(client: pg.ClientBase): Promise<ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(
    `select c.relname::text as table, k.conname::text as name, pg_get_constraintdef(k.oid) as definition
    from pg_constraint k join pg_class c on c.oid = k.conrelid
    where k.contype = 'f' and k.conparentid = 0 and c.relnamespace = current_schema()::regnamespace order by k.oid`,
  );
  return rows;
}

/** Triggers that fire, apart from those of constraints and those that partitions have from their parents. */
export async function listTriggers(client: pg.ClientBase): Promise<{ table: string; name: string }[]> {
  const { rows } = await client.query<{ table: string; name: string }>(
    `select c.relname::text as table, t.tgname::text as name
    from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where not t.tgisinternal and t.tgparentid = 0 and t.tgenabled = 'O' and c.relnamespace = current_schema()::regnamespace
    order by t.oid`,
  );
  return rows;
}

/** Returns whether the schema has no table, view or sequence besides those of extensions. */
export async function isEmpty(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query(
    `select from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      and ${own('pg_class', 'c.oid')} limit 1`,
  );
  return rows.length === 0;
}

export async function isThere(client: pg.ClientBase, table: string): Promise<boolean> {
  const { rows } = await client.query(
    `select from pg_class where relnamespace = current_schema()::regnamespace and relname = $1`,
    [table],
  );
  return rows.length > 0;
}

/** Drops every table, sequence, function and type of the schema that is not of an extension. */
export async function dropEverything(client: pg.ClientBase): Promise<void> {
  // A sequence of an identity column goes with its table.
  const { rows } = await client.query<{ statement: string }>(
    `select statement from (
      select 1 as rank, format('drop %s if exists %s cascade', case c.relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end, c.oid::regclass) as statement
        from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and not c.relispartition and ${own('pg_class', 'c.oid')}
          and (c.relkind <> 'S' or not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('i', 'a')))
      union all
      select 2, format('drop routine if exists %s cascade', p.oid::regprocedure)
        from pg_proc p where p.pronamespace = current_schema()::regnamespace and ${own('pg_proc', 'p.oid')}
      union all
      select 3, format('drop type if exists %s cascade', t.oid::regtype)
        from pg_type t where t.typnamespace = current_schema()::regnamespace and t.typtype in ('e', 'd') and ${own('pg_type', 't.oid')}
    ) drops order by rank`,
  );
  for (const { statement } of rows) await client.query(statement);
}
