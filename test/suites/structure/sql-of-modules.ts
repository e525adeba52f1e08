import { readdirSync, readFileSync } from 'node:fs';

/** Use of a table in the source: where, and whether rows are changed. */
export interface TableUse {
  module: string;
  table: string;
  writes: boolean;
  file: string;
}

/** Folders whose folders are modules of their own. */
const DIVIDED =
  /^(?:services\/capabilities(?:\/(?:service|environment))?|services\/kinds|services|resources|platform|delivery)(?=\/[^/]+\/)/;

/** Returns the module of a file below src: a folder of a resource, a kind, a capability or a part of the platform, else the layer. */
function moduleOf(file: string): string {
  const divided = DIVIDED.exec(file)?.[0];
  return divided ? file.slice(0, file.indexOf('/', divided.length + 1)) : file.slice(0, file.indexOf('/'));
}

const CALLS: [RegExp, boolean][] = [
  [/\b(?:insertInto|updateTable|deleteFrom|mergeInto)\(\s*'(\w+)(?: as \w+)?'/g, true],
  [/\b(?:leasedTable|dueTable)(?:<[^(]*>)?\(\{\s*table: '(\w+)'/g, true],
  [/\bbreakerOn\('(\w+)'/g, true],
  [/\b(?:selectFrom|innerJoin|leftJoin|rightJoin|crossJoin|using)\(\s*'(\w+)(?: as \w+)?'/g, false],
  [/\b(?:selectFrom|from)\(\s*\[([^\]]*)\]/g, false],
];
const TEMPLATE: [RegExp, boolean][] = [
  [/\b(?:insert into|update|delete from) (?:only )?"?(\w+)"?/gi, true],
  [/\b(?:from|join) (?:only )?(?:lateral )?"?(\w+)"?/gi, false],
];

/** Finds every use of a table in the SQL of the source: calls of the query builder and text of `sql` templates. */
export function findTableUses(tables: ReadonlySet<string>): TableUse[] {
  return readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.ts$/.test(file) && !/\.(test|fixture|contract)\.ts$|\/testing\.ts$|tables\.ts$/.test(file))
    .flatMap((file) => usesIn(file, readFileSync(`src/${file}`, 'utf8'), tables));
}

function usesIn(file: string, text: string, tables: ReadonlySet<string>): TableUse[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*$/gm, '');
  const templates = [...code.matchAll(/`(?:[^`\\]|\\.)*`/g)].map(([template]) => template).join('\n');
  const found = [...scan(code, CALLS), ...scan(templates, TEMPLATE)];
  return found
    .filter(({ table }) => tables.has(table))
    .map(({ table, writes }) => ({ module: moduleOf(file), table, writes, file }));
}

const scan = (text: string, patterns: [RegExp, boolean][]) =>
  patterns.flatMap(([pattern, writes]) =>
    [...text.matchAll(pattern)].flatMap((match) =>
      [...match[1]!.matchAll(/\w+/g)].map(([table]) => ({ table, writes })),
    ),
  );
