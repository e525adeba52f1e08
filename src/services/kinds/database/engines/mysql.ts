import {
  readLines,
  tool,
  type BackupTools,
  type Credentials,
  type Edition,
  type Engine,
} from '#services/kinds/database/engines/engine.ts';

const client = (program: string, args: string[], { login, password }: Credentials) =>
  tool([program, '--host=127.0.0.1', '--port=3306', `--user=${login}`, ...args], { MYSQL_PWD: password });

const mysql = (statement: string, credentials: Credentials) =>
  client('mysql', ['--batch', '--skip-column-names', `--execute=${statement}`], credentials);

const backup: BackupTools = {
  format: 'mysqldump',
  extension: 'sql',
  dump: (credentials) =>
    client(
      'mysqldump',
      [
        '--single-transaction',
        '--routines',
        '--events',
        '--triggers',
        '--hex-blob',
        '--no-tablespaces',
        credentials.name,
      ],
      credentials,
    ),
  contents: (credentials) =>
    mysql(
      `select table_name, concat(coalesce(data_length + index_length, 0), ' bytes') from information_schema.tables where table_schema = '${credentials.name}' order by 1`,
      credentials,
    ),
  readContents: readLines,
  restore: (credentials) => ({
    // MySQL cannot rename a database. The backup that precedes each restore is the way back.
    before: [
      mysql(`drop database if exists \`${credentials.name}\`; create database \`${credentials.name}\``, credentials),
    ],
    load: client('mysql', [credentials.name], credentials),
    restart: false,
    after: [],
    undo: [],
  }),
  leavesOut: 'Accounts, and databases besides the one that the server began with.',
};

const inImage: Edition = {
  series: ['8.0', '8.4'],
  start: (_series, { password, name }) => ({
    arguments: [],
    environment: { MYSQL_ROOT_PASSWORD: password, MYSQL_DATABASE: name },
    files: [],
    mountPath: '/var/lib/mysql',
    // By TCP: during the setup the image's server listens on its socket only. A ping needs no login.
    ready: ['mysqladmin', 'ping', '--silent', '--host=127.0.0.1', '--port=3306'],
  }),
  backup,
};

export const mysqlEngine: Engine = {
  type: 'MYSQL',
  label: 'MySQL',
  port: 3306,
  login: 'root',
  databaseName: 'app',
  image: 'mysql',
  inImage,
  older: ['5.7'],
  onMachine: null,
};
