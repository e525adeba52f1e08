import {
  readLines,
  tool,
  type BackupTools,
  type Credentials,
  type Edition,
  type Engine,
} from '#services/kinds/database/engines/engine.ts';

/** File with the password for the tools, which accept it only from a file or their arguments. */
const TOOLS_FILE = '/etc/quarterdeck/mongo-tools.yaml';

const ENTER = 'const admin = db.getSiblingDB("admin"); admin.auth(process.env.DB_LOGIN, process.env.DB_PASSWORD);';

const client = (program: string, args: string[], { login }: Credentials) =>
  tool([
    program,
    '--host=127.0.0.1',
    '--port=27017',
    `--username=${login}`,
    '--authenticationDatabase=admin',
    `--config=${TOOLS_FILE}`,
    ...args,
  ]);

const mongosh = (script: string, { login, password, name }: Credentials) =>
  tool(['mongosh', '--quiet', '--norc', '--host', '127.0.0.1', '--port', '27017', '--eval', `${ENTER} ${script}`], {
    DB_LOGIN: login,
    DB_PASSWORD: password,
    DB_NAME: name,
  });

const CONTENTS = `const own = db.getSiblingDB(process.env.DB_NAME);
for (const name of own.getCollectionNames().sort()) print(name + "\\t" + own.getCollection(name).estimatedDocumentCount() + " documents");`;

const backup: BackupTools = {
  format: 'mongodump',
  extension: 'archive',
  dump: (credentials) => client('mongodump', ['--archive', `--db=${credentials.name}`], credentials),
  contents: (credentials) => mongosh(CONTENTS, credentials),
  readContents: readLines,
  restore: (credentials) => ({
    before: [mongosh('db.getSiblingDB(process.env.DB_NAME).dropDatabase();', credentials)],
    load: client('mongorestore', ['--archive', `--nsInclude=${credentials.name}.*`, '--stopOnError'], credentials),
    restart: false,
    after: [],
    undo: [],
  }),
  leavesOut: 'Accounts, and databases besides the one that the server began with.',
};

/** Ends with 0 once the final server accepts the login. The server that sets the image up listens on loopback only, and does not count. */
const READY = `${ENTER} quit(admin.runCommand({ getCmdLineOpts: 1 }).parsed.net?.bindIp === "127.0.0.1" ? 1 : 0);`;

const inImage: Edition = {
  series: ['6.0', '7.0', '8.0'],
  start: (_series, { login, password, name }) => ({
    arguments: [],
    environment: {
      MONGO_INITDB_ROOT_USERNAME: login,
      MONGO_INITDB_ROOT_PASSWORD: password,
      MONGO_INITDB_DATABASE: name,
      // The readiness check reads these variables: it has only the environment of the instance.
      DB_LOGIN: login,
      DB_PASSWORD: password,
    },
    files: [{ path: TOOLS_FILE, content: `password: ${JSON.stringify(password)}\n` }],
    mountPath: '/data/db',
    ready: ['mongosh', '--quiet', '--norc', '--host', '127.0.0.1', '--port', '27017', '--eval', READY],
  }),
  backup,
};

export const mongodb: Engine = {
  type: 'MONGODB',
  label: 'MongoDB',
  port: 27017,
  login: 'root',
  databaseName: 'app',
  // The first account is one of the database `admin`.
  urlQuery: 'authSource=admin',
  image: 'mongo',
  inImage,
  older: ['3.6', '4.0', '4.2', '4.4', '5.0'],
  onMachine: null,
};
