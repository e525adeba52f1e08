import {
  readLines,
  tool,
  type BackupTools,
  type Credentials,
  type Edition,
  type Engine,
} from '#services/kinds/database/engines/engine.ts';

/** Connection arguments of the tools, which run inside of the server's instance. */
const LOCAL = ['--host=127.0.0.1', '--port=5432', '--no-password'];

const CONTENTS = `select format('%I.%I', n.nspname, c.relname) || chr(9) || pg_size_pretty(pg_total_relation_size(c.oid))
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1`;

const client = (program: string, database: string, args: string[], { login, password }: Credentials) =>
  tool([program, ...LOCAL, `--username=${login}`, `--dbname=${database}`, ...args], { PGPASSWORD: password });

const psql = (database: string, statement: string, credentials: Credentials) =>
  client(
    'psql',
    database,
    ['--no-psqlrc', '--quiet', '--tuples-only', '--no-align', `--command=${statement}`],
    credentials,
  );

/** Database that statements on other databases connect to: a database can't be renamed from within. */
const ELSEWHERE = 'postgres';

const inDumps: BackupTools = {
  format: 'pg_dump',
  extension: 'pgdump',
  dump: (credentials) => client('pg_dump', credentials.name, ['--format=custom'], credentials),
  contents: (credentials) => psql(credentials.name, CONTENTS, credentials),
  readContents: readLines,
  // Restores into a second database, which gets the name of the first when it is complete: a failure leaves the first unchanged.
  restore: (credentials) => {
    const { name } = credentials;
    const [fresh, old] = [`${name}_restoring`, `${name}_replaced`];
    const run = (statement: string) => psql(ELSEWHERE, statement, credentials);
    const drop = (database: string) => run(`drop database if exists "${database}" with (force)`);
    return {
      before: [drop(fresh), run(`create database "${fresh}" template template0`)],
      load: client('pg_restore', fresh, ['--no-owner', '--no-privileges', '--exit-on-error'], credentials),
      restart: false,
      after: [
        run(`alter database "${name}" with allow_connections false`),
        run(`select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${name}'`),
        run(`alter database "${name}" rename to "${old}"; alter database "${fresh}" rename to "${name}"`),
        drop(old),
      ],
      undo: [run(`alter database "${name}" with allow_connections true`), drop(fresh)],
    };
  },
  leavesOut: 'Roles, privileges, and databases besides the one that the server began with.',
};

/** Edition of the image. From 18 on the image keeps the folder of each major version below one volume. */
const inImage: Edition = {
  series: ['14', '15', '16', '17', '18'],
  start: (series, { login, password, name }) => ({
    arguments: [],
    environment: {
      POSTGRES_USER: login,
      POSTGRES_PASSWORD: password,
      POSTGRES_DB: name,
      // A volume's root may contain `lost+found`, which initdb refuses as foreign data.
      PGDATA: Number(series) >= 18 ? `/var/lib/postgresql/${series}/docker` : '/var/lib/postgresql/data/pgdata',
    },
    files: [],
    mountPath: Number(series) >= 18 ? '/var/lib/postgresql' : '/var/lib/postgresql/data',
    // By TCP: during the setup the image's server listens on its socket only.
    ready: ['pg_isready', '--quiet', '--host=127.0.0.1', '--port=5432', `--username=${login}`, `--dbname=${name}`],
  }),
  backup: inDumps,
};

/** The host runtime's own program around the embedded server, which comes without client programs. */
const MACHINE = 'quarterdeck-postgresql';

const inFiles: BackupTools = {
  format: 'pg_basebackup',
  extension: 'tar',
  dump: () => tool([MACHINE, 'copy']),
  contents: ({ name }) => tool([MACHINE, 'ask', name, CONTENTS]),
  readContents: readLines,
  // The restored files lie beside the present ones until the restart swaps them; roles are restored with their passwords.
  restore: ({ login, password }) => ({
    before: [],
    load: tool([MACHINE, 'unpack']),
    restart: true,
    after: [tool([MACHINE, 'password', login], { POSTGRES_PASSWORD: password })],
    undo: [],
  }),
  leavesOut: '',
};

const onMachine: Edition = {
  series: ['18'],
  start: (_series, { login, password, name }) => ({
    arguments: [],
    environment: { POSTGRES_USER: login, POSTGRES_PASSWORD: password, POSTGRES_DB: name },
    files: [],
    mountPath: '/data',
    ready: [MACHINE, 'ask', name, 'select 1'],
  }),
  backup: inFiles,
};

export const postgresql: Engine = {
  type: 'POSTGRESQL',
  label: 'PostgreSQL',
  port: 5432,
  login: 'postgres',
  databaseName: 'app',
  image: 'postgres',
  inImage,
  older: ['10', '11', '12', '13'],
  onMachine,
};
