/** Returns the lines that are taken away and added, by their longest common subsequence. */
export function changesBetween(old: string[], fresh: string[]): string[] {
  const width = fresh.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--)
      common[i * width + j] =
        old[i] === fresh[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length)
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      i++;
      j++;
    } else if (j >= fresh.length || (i < old.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!))
      lines.push(`- ${old[i++]}`);
    else lines.push(`+ ${fresh[j++]}`);
  return lines;
}
