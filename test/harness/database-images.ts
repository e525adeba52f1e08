import { execFile } from 'node:child_process';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import type { TestRegistry } from '#test/harness/registry.ts';

const run = promisify(execFile);

const PATH = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Image of a database server, made of the machine's own programs (Debian's packages), because no registry need be reachable. It takes the
 * same variables and data folders as the official image.
 */
interface ServerImage {
  /** Name of the official image, and the release series of the machine's program. */
  name: string;
  version: string;
  /** Programs and folders of the machine. */
  paths: string[];
  /** Names in the image's PATH, and their targets. */
  links: Record<string, string>;
  /** Shell script that starts the server. */
  entrypoint: string;
}

/** Prefix that runs a program as the database's account. It needs the full path: busybox' shell has a program of its own of that name. */
const AS_SERVER = '/usr/bin/setpriv --reuid=999 --regid=999 --clear-groups --';

/** Returns the image of the machine's PostgreSQL, null if it is not installed. */
function postgresql(): ServerImage | null {
  const base = '/usr/lib/postgresql';
  const version = existsSync(base) ? readdirSync(base).sort().at(-1) : undefined;
  if (version === undefined || !existsSync(`${base}/${version}/bin/postgres`)) return null;
  const bin = `${base}/${version}/bin`;
  const programs = ['initdb', 'postgres', 'psql', 'pg_dump', 'pg_restore', 'pg_isready'];
  const modules = readdirSync(`${base}/${version}/lib`).filter(
    (name) => name.endsWith('.so') && !name.includes('llvm'),
  );
  return {
    name: 'postgres',
    version,
    paths: [
      ...programs.map((name) => `${bin}/${name}`),
      ...modules.map((name) => `${base}/${version}/lib/${name}`),
      `/usr/share/postgresql/${version}`,
      '/usr/share/zoneinfo',
    ],
    links: Object.fromEntries(programs.map((name) => [name, `${bin}/${name}`])),
    entrypoint: `
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA" && chown -R 999:999 "$PGDATA" && chmod 700 "$PGDATA"
  printf '%s' "$POSTGRES_PASSWORD" > /tmp/password && chown 999 /tmp/password
  ${AS_SERVER} initdb -D "$PGDATA" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 --locale=C
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  echo "create database \\"$POSTGRES_DB\\"" | ${AS_SERVER} postgres --single -D "$PGDATA" postgres
fi
exec ${AS_SERVER} postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp`,
  };
}

function redis(): ServerImage | null {
  if (!existsSync('/usr/bin/redis-server')) return null;
  return {
    name: 'redis',
    version: '7',
    paths: ['/usr/bin/redis-server', '/usr/bin/redis-cli'],
    links: {},
    entrypoint: `chown -R 999:999 /data\nexec ${AS_SERVER} "$@"`,
  };
}

/** Returns the image of MariaDB in place of MySQL, which Debian does not have. */
function mysql(): ServerImage | null {
  if (!existsSync('/usr/sbin/mariadbd')) return null;
  return {
    name: 'mysql',
    version: '8.0',
    paths: [
      '/usr/sbin/mariadbd',
      '/usr/bin/mariadb',
      '/usr/bin/mariadb-dump',
      '/usr/bin/mariadb-admin',
      '/usr/share/mysql',
    ],
    links: {
      mysql: '/usr/bin/mariadb',
      mysqldump: '/usr/bin/mariadb-dump',
      mysqladmin: '/usr/bin/mariadb-admin',
    },
    entrypoint: `
OPTIONS="--no-defaults --datadir=/var/lib/mysql --skip-name-resolve --socket=/tmp/mysql.sock --port=3306"
chown -R 999:999 /var/lib/mysql
if [ ! -d /var/lib/mysql/mysql ]; then
  (echo 'create database mysql;'
   echo 'use mysql;'
   for part in mysql_system_tables mysql_performance_tables mysql_system_tables_data; do cat /usr/share/mysql/$part.sql; done) |
    ${AS_SERVER} mariadbd $OPTIONS --bootstrap --skip-networking
fi
cat > /tmp/init.sql <<SQL
delete from mysql.global_priv where User = '' or (User = 'root' and Host not in ('%', 'localhost'));
flush privileges;
create user if not exists 'root'@'%' identified by '$MYSQL_ROOT_PASSWORD';
grant all on *.* to 'root'@'%' with grant option;
create database if not exists $MYSQL_DATABASE;
SQL
exec ${AS_SERVER} mariadbd $OPTIONS --init-file=/tmp/init.sql`,
  };
}

/** Returns the types of databases for which images can be made here, with their versions. */
export const makeableImages = (): { POSTGRESQL?: string; REDIS?: string; MYSQL?: string } => ({
  ...(postgresql() ? { POSTGRESQL: postgresql()!.version } : {}),
  ...(redis() ? { REDIS: '7' } : {}),
  ...(mysql() ? { MYSQL: '8.0' } : {}),
});

/** Makes the images in the engine and pushes them to a registry on this machine, as `<host>/library/<name>:<version>`. */
export async function pushServerImages(socketPath: string, registry: string): Promise<void> {
  const docker = new Docker({ socketPath });
  for (const image of [postgresql(), redis(), mysql()]) if (image) await pushImage(docker, registry, image);
}

/** Pushes the image of a server to a registry, as `pushServerImages` does, without a container engine. */
export async function pushServerImage(registry: TestRegistry, type: 'POSTGRESQL' | 'REDIS' | 'MYSQL'): Promise<void> {
  const image = { POSTGRESQL: postgresql, REDIS: redis, MYSQL: mysql }[type]();
  if (!image) throw new Error(`The server of ${type} is not installed.`);
  const root = mkdtempSync(path.join(tmpdir(), 'qd-image-'));
  try {
    await fillRoot(root, image);
    const archive = `${root}.tar`;
    await run('tar', ['-C', root, '-cf', archive, '.']);
    const layer = readFileSync(archive);
    rmSync(archive);
    await registry.pushImage(`library/${image.name}`, image.version, {
      layer,
      config: { Env: [`PATH=${PATH}`], Entrypoint: ['/entrypoint'] },
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function pushImage(docker: Docker, registry: string, image: ServerImage): Promise<void> {
  const root = mkdtempSync(path.join(tmpdir(), 'qd-image-'));
  try {
    await fillRoot(root, image);
    const archive = `${root}.tar`;
    await run('tar', ['-C', root, '-cf', archive, '.']);
    const repo = `${registry}/library/${image.name}`;
    const changes = [`ENV PATH=${PATH}`, 'ENTRYPOINT ["/entrypoint"]'];
    const answer = await docker.importImage(createReadStream(archive), { changes } as object);
    rmSync(archive);
    const id = /sha256:[0-9a-f]{64}/.exec(await textOf(answer as Readable))?.[0];
    if (id === undefined) throw new Error(`The image ${repo} cannot be made.`);
    await docker.getImage(id).tag({ repo, tag: image.version });
    const pushed = await textOf(
      (await docker
        .getImage(`${repo}:${image.version}`)
        .push({ authconfig: { username: '', password: '', serveraddress: registry } })) as Readable,
    );
    if (pushed.includes('"error"')) throw new Error(pushed);
    // The engine must pull this image, as it must pull the official one.
    await docker.getImage(`${repo}:${image.version}`).remove({ force: true });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const textOf = async (stream: Readable): Promise<string> => (await stream.setEncoding('utf8').toArray()).join('');

async function fillRoot(root: string, { paths, links, entrypoint }: ServerImage): Promise<void> {
  const programs = [...paths, '/usr/bin/setpriv', '/bin/busybox'];
  const list = new Set(programs);
  for (const file of programs) for (const library of await librariesOf(file)) list.add(library);
  const archive = `${root}.copy.tar`;
  await run('tar', ['-C', '/', '-chf', archive, ...[...list].map((file) => file.slice(1))], { maxBuffer: 1 << 24 });
  await run('tar', ['-C', root, '-xf', archive]);
  rmSync(archive);
  for (const folder of ['tmp', 'etc', 'data', 'var/lib/mysql', 'proc', 'sys', 'dev', 'usr/local/bin', 'bin', 'run'])
    mkdirSync(path.join(root, folder), { recursive: true });
  await run('chmod', ['1777', path.join(root, 'tmp')]);
  const { stdout } = await run('/bin/busybox', ['--list']);
  for (const applet of stdout.trim().split('\n'))
    if (!existsSync(path.join(root, 'bin', applet))) symlinkSync('/bin/busybox', path.join(root, 'bin', applet));
  for (const [name, target] of Object.entries(links)) symlinkSync(target, path.join(root, 'usr/local/bin', name));
  writeFileSync(path.join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nserver:x:999:999::/tmp:/bin/sh\n');
  writeFileSync(path.join(root, 'etc/group'), 'root:x:0:\nserver:x:999:\n');
  writeFileSync(path.join(root, 'entrypoint'), `#!/bin/sh\nset -e\n${entrypoint}\n`, { mode: 0o755 });
}

/** Returns the shared libraries that a program loads; none for a file that is not a program. */
async function librariesOf(file: string): Promise<string[]> {
  const { stdout } = await run('ldd', [realpathSync(file)]).catch(() => ({ stdout: '' }));
  return [...stdout.matchAll(/(?:=> |^\s*)(\/\S+) \(/gm)].map(([, library]) => library!);
}
