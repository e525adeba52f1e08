import semver from 'semver';

/** Releases of languages that have images, the preferred one first, each as `major` or `major.minor`. */
const RELEASES = {
  node: ['24', '26', '22', '20', '18'],
  python: ['3.13', '3.14', '3.12', '3.11', '3.10'],
  java: ['21', '25', '17', '11', '8'],
  ruby: ['3.4', '4.0', '3.3', '3.2'],
  php: ['8.4', '8.5', '8.3', '8.2'],
};

/** Longer ranges are not read: their versions are compared in pairs. */
const LONGEST = 200;

/** Returns the preferred release that a range of the project allows; without a range, or where none fits, the preferred one. */
export function releaseFor(language: keyof typeof RELEASES, range: string | null | undefined): string {
  const known = RELEASES[language];
  const wanted = range && range.length <= LONGEST ? semver.validRange(asRange(range), { loose: true }) : null;
  return known.find((release) => wanted === null || fits(release, wanted)) ?? known[0]!;
}

/** Returns a range of the form of npm: versions of Python's and Ruby's are written a little differently. */
const asRange = (range: string): string =>
  range
    .trim()
    .replace(/^(?:v|ruby-|python-)(?=\d)/, '')
    .replaceAll(/~=\s*(\d+)\.(\d+)\.(\d+)/g, '~$1.$2.$3')
    .replaceAll(/~=\s*(\d+)\.(\d+)/g, '^$1.$2')
    .replaceAll('==', '=')
    .replaceAll(/!=\s*[\w.*]+,?/g, '')
    .replaceAll(',', ' ');

/** A release stands for all of its versions. */
const fits = (release: string, range: string): boolean => semver.intersects(release, range);
