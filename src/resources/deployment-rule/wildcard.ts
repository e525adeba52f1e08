/**
 * Returns whether a pattern of `*` (any characters) and `?` (one) stands for a name. Names are compared without case (docs/contributing/rules.md 8). It goes back
 * to the last star only, so that no pattern takes long.
 */
export function matchesWildcard(pattern: string, name: string): boolean {
  const [wanted, given] = [[...pattern.toLowerCase()], [...name.toLowerCase()]];
  let [p, n, star, mark] = [0, 0, -1, 0];
  while (n < given.length) {
    if (wanted[p] === '*') [star, mark, p] = [p, n, p + 1];
    else if (wanted[p] === '?' || wanted[p] === given[n]) [p, n] = [p + 1, n + 1];
    else if (star >= 0) [mark, n, p] = [mark + 1, mark + 1, star + 1];
    else return false;
  }
  return wanted.slice(p).every((character) => character === '*');
}
