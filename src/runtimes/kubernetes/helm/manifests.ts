/** Lines of an object beyond which only the fact of a change is told: a comparison takes time by their product. */
const MOST_COMPARED = 1_000;

/** Compares two manifests of a release by their objects. Contents of Secrets are not told. */
export function differences(before: string, after: string): string[] {
  const [old, fresh] = [objectsIn(before), objectsIn(after)];
  const lines: string[] = [];
  for (const [name, text] of fresh) {
    const present = old.get(name);
    if (present === undefined) lines.push(`+ ${name} is created`);
    else if (present !== text) lines.push(`~ ${name} is changed`, ...changesOf(name, present, text));
  }
  for (const name of old.keys()) if (!fresh.has(name)) lines.push(`- ${name} is removed`);
  return lines;
}

/** Name of an object, in a block of lines or in braces. */
const NAME =
  /^metadata:(?:\s*\n(?:[ \t]+.*\n)*?[ \t]+name:\s*["']?([^\s"']+)|\s*\{(?:[^}\n]*?[,{\s])?name:\s*["']?([^\s"',}]+))/m;

/** Splits a manifest into its objects, by kind and name. */
function objectsIn(manifest: string): Map<string, string> {
  const objects = new Map<string, string>();
  for (const text of manifest.split(/^---\s*$/m)) {
    const kind = /^kind:\s*["']?([\w.-]+)/m.exec(text)?.[1];
    if (kind === undefined) continue;
    const name = NAME.exec(`${text}\n`)
      ?.slice(1)
      .find((found) => found !== undefined);
    const content = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('# Source:'));
    objects.set(`${kind} ${name ?? '(without a name)'}`, content.map((line) => line.trimEnd()).join('\n'));
  }
  return objects;
}

function changesOf(name: string, before: string, after: string): string[] {
  if (name.startsWith('Secret ')) return ['    (its content is not shown)'];
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  if (Math.max(old.length, fresh.length) > MOST_COMPARED) return ['    (it is too long to be compared)'];
  return compare(old, fresh).map((line) => `    ${line}`);
}

/** Returns the lines that are taken away and added, by their longest common subsequence. */
function compare(old: string[], fresh: string[]): string[] {
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
