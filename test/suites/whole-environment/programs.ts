import { cpSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const PACKAGES = path.join(import.meta.dirname, '../../../node_modules');

/** Port that the application and the container listen on. */
export const PORT = 8080;

/** Beginning of each program: asks the database that the variables name. */
const ASK = `
const { Client } = require('pg');
async function ask(statement, values) {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  try {
    return (await client.query(statement, values)).rows;
  } finally {
    await client.end();
  }
}
`;

/** Server that reports what it has from each other service. */
const SERVER = `${ASK}
const { connect } = require('node:net');
const { readFileSync } = require('node:fs');
const { NOTE, SCHEMA, STOCK, CACHE_HOST, CACHE_PASSWORD, PAGE_HOST } = process.env;

const visits = () => new Promise((resolve, reject) => {
  const socket = connect(6379, CACHE_HOST, () => socket.write('AUTH ' + CACHE_PASSWORD + '\\r\\nINCR visits\\r\\n'));
  let said = '';
  socket.on('error', reject);
  socket.on('data', (part) => {
    said += part;
    if (!/^(.*\\r\\n){2}/.test(said)) return;
    socket.end();
    resolve(said.replace('+OK\\r\\n', '').trim());
  });
});
const page = async () => (await (await fetch('http://' + PAGE_HOST + ':${PORT}/')).text()).trim();

require('node:http').createServer(async (request, response) => {
  try {
    const answer = {
      release: readFileSync('release', 'utf8'),
      note: NOTE,
      schema: SCHEMA,
      stock: STOCK,
      events: (await ask('select what from event order by number')).map(({ what }) => what),
      ...(CACHE_HOST ? { visits: await visits() } : {}),
      ...(PAGE_HOST ? { page: await page() } : {}),
    };
    response.end(JSON.stringify(answer));
  } catch (error) {
    response.writeHead(500).end(error.stack);
  }
}).listen(${PORT});
process.on('SIGTERM', () => process.exit(0));
`;

/** Job that records each run; at the start it creates the tables, and reports that as an output. */
const JOB = `${ASK}
const [what] = process.argv.slice(2);
(async () => {
  if (what === 'up') {
    await ask('create table if not exists event (number serial, what text)');
    const output = { SCHEMA: 'tables with ' + (process.env.NOTE ?? 'no note'), TOKEN: { value: 'hunter-22', sensitive: true } };
    require('node:fs').writeFileSync('/quarterdeck-output/output.json', JSON.stringify(output));
  }
  await ask('insert into event (what) values ($1)', [what]);
})();
`;

const dockerfile = (entrypoint: string[]) => `FROM node:24-alpine
WORKDIR /app
COPY . .
ENTRYPOINT ${JSON.stringify(entrypoint)}
`;

/** Returns the files of the repository that the application and the jobs share. */
export const sourceOf = (release: string): Record<string, string> => ({
  release,
  'server.cjs': SERVER,
  'job.cjs': JOB,
  Dockerfile: dockerfile(['node', 'server.cjs']),
  'job.Dockerfile': dockerfile(['node', 'job.cjs']),
});

/** Copies the client of PostgreSQL with all that it needs into a repository: nothing is fetched while it is built. */
export function addClient(folder: string, name = 'pg', done = new Set<string>()): void {
  const from = path.join(PACKAGES, name);
  if (done.has(name) || !existsSync(from)) return;
  done.add(name);
  cpSync(from, path.join(folder, 'node_modules', name), { recursive: true });
  const { dependencies = {} } = JSON.parse(readFileSync(path.join(from, 'package.json'), 'utf8'));
  for (const needed of Object.keys(dependencies)) addClient(folder, needed, done);
}

export const MODULE = `
variable "database" {}
variable "word" {}
resource "terraform_data" "note" { input = "\${var.word} for \${var.database}" }
output "NOTE" { value = terraform_data.note.output }
`;

/** Counts its runs in MySQL, with the client of the image. */
export const STOCK_SCRIPT = `set -e
run() { mysql --host="$STOCK_HOST" --user="$STOCK_LOGIN" --batch --skip-column-names --execute="$1" app; }
run 'create table if not exists stock (n int auto_increment primary key)'
run 'insert into stock values ()'
printf '{"STOCK": "%s"}' "$(run 'select count(*) from stock')" > /quarterdeck-output/output.json`;

/** Returns a script that serves a page with the name of its release and the job's output. */
export const pageScript = (release: string): string =>
  `echo "page ${release} of $SCHEMA" > /www/index.html; exec /bin/busybox httpd -f -p ${PORT} -h /www`;
