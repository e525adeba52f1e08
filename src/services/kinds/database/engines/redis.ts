import {
  tool,
  type BackupTools,
  type Content,
  type Credentials,
  type Edition,
  type Engine,
} from '#services/kinds/database/engines/engine.ts';

const CONFIG_FILE = '/etc/quarterdeck/redis.conf';
/** File that a restore writes and the server reloads. */
const RESTORED = '/data/restored.rdb';
const DUMP = '/data/dump.rdb';

/** Runs redis-cli; with `-e` an error that the server answers is an error of the program. */
const redis = (args: string[], { password }: Credentials) =>
  tool(['redis-cli', '-e', '-h', '127.0.0.1', '-p', '6379', ...args], { REDISCLI_AUTH: password });

/** `db0:keys=3,expires=0,avg_ttl=0` */
const readKeyspace = (text: string): Content[] =>
  [...text.matchAll(/^(db\d+):keys=(\d+)/gm)].map(([, name, keys]) => ({ name: name!, amount: `${keys} keys` }));

const backup: BackupTools = {
  format: 'rdb',
  extension: 'rdb',
  dump: (credentials) => redis(['--rdb', '-'], credentials),
  contents: (credentials) => redis(['info', 'keyspace'], credentials),
  readContents: readKeyspace,
  // The server reads a dump only at its start or on a reload, and only without the append-only log, which would win.
  restore: (credentials) => ({
    before: [],
    load: tool(['dd', `of=${RESTORED}`, 'bs=64k', 'status=none']),
    restart: false,
    after: [
      redis(['config', 'set', 'appendonly', 'no'], credentials),
      tool(['mv', '-f', RESTORED, DUMP]),
      redis(['debug', 'reload', 'nosave'], credentials),
      redis(['config', 'set', 'appendonly', 'yes'], credentials),
      tool(['rm', '-f', DUMP]),
    ],
    undo: [redis(['config', 'set', 'appendonly', 'yes'], credentials), tool(['rm', '-f', RESTORED])],
  }),
  leavesOut: '',
};

const inImage: Edition = {
  series: ['7', '8'],
  start: (_series, { password }) => ({
    arguments: ['redis-server', CONFIG_FILE],
    environment: { REDISCLI_AUTH: password },
    // `enable-debug-command local`: a restore reloads the server from within its own instance.
    files: [
      {
        path: CONFIG_FILE,
        content: [
          `requirepass ${password}`,
          'dir /data',
          // Append-only log alone: only a restore writes a dump.
          'appendonly yes',
          'save ""',
          'enable-debug-command local',
          'bind * -::*',
          '',
        ].join('\n'),
      },
    ],
    mountPath: '/data',
    ready: ['redis-cli', '-e', '-h', '127.0.0.1', '-p', '6379', 'ping'],
  }),
  backup,
};

export const redisEngine: Engine = {
  type: 'REDIS',
  label: 'Redis',
  port: 6379,
  login: 'default',
  databaseName: '0',
  image: 'redis',
  inImage,
  older: ['5.0', '6.0', '6.2'],
  onMachine: null,
};
