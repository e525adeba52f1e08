import { print } from '#cli/print.ts';

/** Prints rows of cells in columns as wide as their longest cell; the first row has the heads. */
export function printTable(rows: string[][]): void {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  for (const row of rows)
    print(
      row
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join('  ')
        .trimEnd(),
    );
}
