/** A table with columns as wide as their widest cell, as prettier writes them. */
export function table(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((cells) => cells[column]!.length)));
  const row = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  return [row(head), row(widths.map((width) => '-'.repeat(width))), ...rows.map(row)].join('\n');
}
