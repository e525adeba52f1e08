import { invalidField } from '#kernel/errors.ts';
import { MACHINE_RUNTIME, RUNTIME_FEATURES } from '#runtimes/runtime.ts';
import { DATABASE_TYPES, type DatabaseType, type Engine } from '#services/kinds/database/engines/engine.ts';
import { mongodb } from '#services/kinds/database/engines/mongodb.ts';
import { mysqlEngine } from '#services/kinds/database/engines/mysql.ts';
import { postgresql } from '#services/kinds/database/engines/postgresql.ts';
import { redisEngine } from '#services/kinds/database/engines/redis.ts';

export * from '#services/kinds/database/engines/engine.ts';

export const ENGINES: Readonly<Record<DatabaseType, Engine>> = {
  MONGODB: mongodb,
  MYSQL: mysqlEngine,
  POSTGRESQL: postgresql,
  REDIS: redisEngine,
};

const MACHINE_IMAGE = 'host:';

/** Returns whether an image stands for a program of the machine. */
export const isMachineImage = (image: string): boolean => image.startsWith(MACHINE_IMAGE);

/** Release series that a configuration may name, the oldest first. */
const seriesOfType = (type: DatabaseType): readonly string[] => [
  ...ENGINES[type].older,
  ...ENGINES[type].inImage.series,
];

/** Tells whether clusters of a runtime run a version as a program of the machine; otherwise they run an image. */
const isOfMachine = (type: DatabaseType, version: string, runtime: string): boolean =>
  runtime === MACHINE_RUNTIME && (ENGINES[type].onMachine?.series.includes(seriesOf(type, version)) ?? false);

/** Returns the image of a server, below the prefix of the settings, or the name of the machine's program. */
export const imageOf = (type: DatabaseType, version: string, runtime: string, imagePrefix: string): string =>
  isOfMachine(type, version, runtime)
    ? `${MACHINE_IMAGE}${type.toLowerCase()}/${version}`
    : `${imagePrefix}${ENGINES[type].image}:${version}`;

/** Tells whether a version is older than the images that this release starts. */
export const isOlderThanImages = (type: DatabaseType, version: string): boolean =>
  ENGINES[type].older.includes(seriesOf(type, version));

/** Lists every type with the versions that a runtime runs. Other versions may be configured, and are refused when they are deployed. */
export const listVersions = (runtime: string): { type: DatabaseType; versions: readonly string[] }[] =>
  DATABASE_TYPES.flatMap((type) => {
    const { onMachine, inImage } = ENGINES[type];
    const runsAll = RUNTIME_FEATURES[runtime as keyof typeof RUNTIME_FEATURES]?.includes('older-databases');
    const series = runtime === MACHINE_RUNTIME ? onMachine?.series : runsAll ? seriesOfType(type) : inImage.series;
    return series ? [{ type, versions: series.toReversed() }] : [];
  });

/** A version with its release series: `16.4` is one of `16`, `8.0.39` one of `8.0`. */
interface Version {
  text: string;
  series: string;
  /** Position of the series among those of its type. */
  place: number;
  /** Numbers after the series; empty stands for the newest. */
  minor: number[];
}

function parse(type: DatabaseType, text: string): Version | null {
  const all = seriesOfType(type);
  const place = all.findLastIndex((series) => text === series || text.startsWith(`${series}.`));
  const series = all[place];
  if (series === undefined) return null;
  const rest = text.slice(series.length + 1);
  if (text !== series && !/^\d{1,5}(\.\d{1,5})*$/.test(rest)) return null;
  return { text, series, place, minor: rest === '' ? [] : rest.split('.').map(Number) };
}

/** The release series of a stored version. */
export const seriesOf = (type: DatabaseType, version: string): string => parse(type, version)!.series;

/** Throws 400 for a version that an engine does not have; the message lists those that it has. */
export function checkVersion(type: DatabaseType, text: string): Version {
  const version = parse(type, text);
  if (version) return version;
  const all = seriesOfType(type);
  throw invalidField(
    'version',
    `must be ${all.toReversed().join(', ')}, or one of these with the rest of its number (${all.at(-1)}.1)`,
  );
}

/**
 * Refuses a change of version after which the server would not start with its present files: only newer versions of the same series do.
 * `deployed` tells whether there are files.
 */
export function checkUpgrade(type: DatabaseType, from: string, to: string, deployed: boolean): void {
  const next = checkVersion(type, to);
  const present = parse(type, from);
  if (!deployed || from === to || !present) return;
  const { label } = ENGINES[type];
  const way = `create a database of version ${to} and restore a backup of this one into it`;
  if (next.place > present.place)
    throw invalidField('version', `${label} ${to} does not read the files of ${from} (a new major version): ${way}`);
  if (next.place < present.place || isOlder(next.minor, present.minor))
    throw invalidField('version', `${label} ${from} can't be taken back to ${to}: ${way}`);
}

/** Returns whether a version is of a newer release series than another. */
export function isNewer(type: DatabaseType, version: string, than: string): boolean {
  const placeOf = (text: string) => parse(type, text)?.place ?? -1;
  return placeOf(version) > placeOf(than);
}

/** Compares numbers of versions. A version without numbers is the newest of its series. */
function isOlder(one: number[], other: number[]): boolean {
  if (one.length === 0) return false;
  if (other.length === 0) return true;
  for (let place = 0; place < Math.max(one.length, other.length); place++) {
    const difference = (one[place] ?? Infinity) - (other[place] ?? Infinity);
    if (difference < 0) return true;
    if (difference > 0) return false;
  }
  return false;
}
