/** Services that fail, one for each cause: what they are built from and started with. */

export interface FailingService {
  cause: string;
  /** Files of the repository; the Dockerfile among them. */
  files: Record<string, string>;
  /** Fields in which it differs from an application with a port. */
  body?: object;
}

const node = (script: string) => ({
  Dockerfile: 'FROM node:24\nWORKDIR /app\nCOPY . .\nCMD ["node", "server.cjs"]\n',
  'server.cjs': `${script}\n`,
});
const shell = (script: string) => ({
  Dockerfile: `FROM busybox\nWORKDIR /app\nCOPY . .\nCMD ${JSON.stringify(['sh', '-c', script])}\n`,
});
const build = (...lines: string[]) => ({
  Dockerfile: `FROM node:24\nWORKDIR /app\nCOPY . .\n${lines.join('\n')}\nCMD ["true"]\n`,
});
const npm = (manifest: object, ...lines: string[]) => ({
  ...build(...lines),
  'package.json': JSON.stringify({ name: 'shop', version: '1.0.0', private: true, ...manifest }),
});

/** Registry of packages that answers everything with a status, beside the command that asks it. */
const registry = (status: number, port: number) => [
  `RUN node -e 'require("http").createServer((q, a) => { a.statusCode = ${status}; a.end("{}"); }).listen(${port})' & sleep 1; npm install --no-audit --fetch-retries=0 --registry=http://127.0.0.1:${port}/ shop-that-is-not-there`,
];

export const STARTS: FailingService[] = [
  {
    cause: 'PORT_IN_USE',
    files: node(
      `const { createServer } = require('node:http'); createServer().listen(3999, () => createServer().listen(3999));`,
    ),
  },
  { cause: 'MODULE_MISSING', files: node(`require('express');`) },
  { cause: 'SYNTAX', files: node('const answer = {;') },
  { cause: 'VARIABLE_MISSING', files: shell(': "${DATABASE_URL:?}"') },
  { cause: 'NAME_UNKNOWN', files: node(`require('node:net').connect(80, 'no-such-host.invalid');`) },
  { cause: 'CONNECTION_REFUSED', files: node(`require('node:net').connect(9, '127.0.0.1');`) },
  { cause: 'FILE_MISSING', files: node(`require('node:fs').readFileSync('/nothing/here.json');`) },
  { cause: 'FILE_FORBIDDEN', files: shell('echo > /usr/made') },
  { cause: 'DISK_FULL', files: node(`require('node:fs').writeFileSync('/dev/full', 'text');`) },
  {
    cause: 'TOO_MANY_FILES',
    files: node(`const fs = require('node:fs'); for (;;) fs.openSync('/dev/null');`),
  },
  {
    cause: 'OUT_OF_MEMORY',
    files: node(`const kept = []; for (;;) kept.push(new Array(1000).fill({}));`),
    body: { arguments: ['node', '--max-old-space-size=20', 'server.cjs'] },
  },
  { cause: 'PROGRAM_MISSING', files: shell(''), body: { arguments: ['no-such-program'] } },
  {
    cause: 'PROGRAM_NOT_EXECUTABLE',
    files: { ...shell(''), 'run.sh': 'echo\n' },
    body: { arguments: ['/app/run.sh'] },
  },
  {
    cause: 'WRONG_ARCHITECTURE',
    files: build(`RUN printf '\\177ELF\\002\\001\\001' > program && chmod +x program`),
    body: { arguments: ['/app/program'] },
  },
  { cause: 'ARGUMENT_UNKNOWN', files: node(''), body: { arguments: ['node', '--no-such-option'] } },
  { cause: 'CRASHED', files: node('process.abort();') },
  { cause: 'KILLED', files: node(`process.kill(process.pid, 'SIGKILL');`) },
  { cause: 'ENDED_WELL', files: node('') },
  { cause: 'ENDED_WITH_ERROR', files: node('process.exit(3);') },
  {
    cause: 'CERTIFICATE',
    files: {
      ...node(
        `const fs = require('node:fs'); const https = require('node:https');
const server = https.createServer({ key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem') });
server.listen(0, () => https.get({ port: server.address().port, host: 'localhost' }));`,
      ),
      Dockerfile: `FROM node:24\nWORKDIR /app\nCOPY . .\nRUN openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost && chmod 644 key.pem\nCMD ["node", "server.cjs"]\n`,
    },
  },
];

export const BUILDS: FailingService[] = [
  { cause: 'PROJECT_UNCLEAR', files: { 'package.json': '{}' } },
  {
    cause: 'MACHINE_PROGRAM_MISSING',
    files: { 'package.json': '{"main":"index.js"}', 'index.js': '', 'bun.lock': '' },
  },
  { cause: 'BUILD_COMMAND', files: build('RUN false') },
  { cause: 'BUILD_PATH_MISSING', files: build(), body: { dockerfile_path: 'Dockerfile.removed' } },
  { cause: 'COPY_SOURCE_MISSING', files: build('COPY nothing.txt /app/') },
  { cause: 'DOCKERFILE_INVALID', files: { Dockerfile: 'FROM node:24\nFLY away\n' } },
  { cause: 'HOST_BUILD_LIMITS', files: build('COPY --from=nginx:1 /etc/nginx /app/nginx') },
  { cause: 'LOCK_FILE', files: npm({}, 'RUN npm ci') },
  { cause: 'SCRIPT_MISSING', files: npm({}, 'RUN npm run compile') },
  { cause: 'PACKAGE_MISSING', files: npm({}, ...registry(404, 4873)) },
  { cause: 'PACKAGE_ACCESS', files: npm({}, ...registry(401, 4874)) },
  {
    cause: 'TOOL_VERSION',
    files: npm({ engines: { node: '>=99' } }, 'RUN npm install --no-audit --engine-strict'),
  },
  { cause: 'PROGRAM_MISSING', files: build('RUN no-such-compiler --version') },
  {
    cause: 'OUT_OF_MEMORY',
    files: build(`RUN node --max-old-space-size=20 -e 'const a = []; for (;;) a.push(new Array(1000).fill({}))'`),
  },
];
