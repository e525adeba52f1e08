import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import tls from 'node:tls';
import { SMTPServer, type SMTPServerAuthentication, type SMTPServerOptions } from 'smtp-server';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { selfSigned } from '#test/harness/self-signed.ts';

interface ReceivedMail {
  from: string;
  to: string[];
  /** Header fields by their names in lower case; folded lines are joined. */
  headers: Map<string, string>;
  /** Text, decoded. */
  body: string;
  source: string;
  secure: boolean;
  /** Name that the client gave in EHLO. */
  client: string;
}

interface MailServerOptions extends SMTPServerOptions {
  /** Returns why a recipient is refused. */
  refuses?(recipient: string): Error | undefined;
  /** Returns why a mail is refused. */
  refusesMail?(number: number, source: string): Error | undefined;
  /** Password that a login needs. */
  password?: string;
  /** Port; any free one if absent. */
  port?: number;
}

/** Names of the header fields of each mail, in the order of the alphabet. */
export const HEADERS = [
  'auto-submitted',
  'content-transfer-encoding',
  'content-type',
  'date',
  'from',
  'message-id',
  'mime-version',
  'subject',
  'to',
];

/** Returns the error that a server answers with a code. */
export const reply = (responseCode: number, message: string): Error =>
  Object.assign(new Error(message), { responseCode });

function decoded(body: string, encoding: string | undefined): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString();
  if (encoding !== 'quoted-printable') return body;
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

/** Mail servers on 127.0.0.1 that end with each test. `trusted` is a certificate for `localhost` that this process trusts. */
export function useMailServers() {
  const trusted = selfSigned();
  const servers: (() => Promise<void>)[] = [];
  const before = tls.getCACertificates('default');
  beforeAll(() => tls.setDefaultCACertificates([...before, trusted.cert]));
  afterAll(() => tls.setDefaultCACertificates(before));
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((close) => close()));
  });

  /** Starts a server that keeps what it gets. */
  async function start({ refuses, refusesMail, password, port = 0, ...options }: MailServerOptions = {}) {
    const mails: ReceivedMail[] = [];
    const logins: Pick<SMTPServerAuthentication, 'username' | 'password'>[] = [];
    let begun = 0;
    let attempts = 0;
    const server = new SMTPServer({
      ...trusted,
      authOptional: password === undefined,
      disabledCommands: password === undefined ? ['AUTH'] : [],
      disableReverseLookup: true,
      closeTimeout: 100,
      onAuth({ username, password: given }, _session, done) {
        logins.push({ username, password: given });
        if (given === password) done(null, { user: username });
        else done(reply(535, `5.7.8 wrong password ${given}`));
      },
      onMailFrom(_address, _session, done) {
        begun++;
        done();
      },
      onRcptTo: ({ address }, _session, done) => done(refuses?.(address)),
      async onData(stream, session, done) {
        const source = await text(stream);
        const refusal = refusesMail?.(++attempts, source);
        if (refusal) return done(refusal);
        const { mailFrom, rcptTo } = session.envelope;
        const [head = '', ...body] = source.split('\r\n\r\n');
        const headers = new Map(
          head
            .replaceAll(/\r\n(?=[ \t])/g, '')
            .split('\r\n')
            .map((line) => [line.split(':', 1)[0]!.toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
        );
        mails.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          headers,
          body: decoded(body.join('\r\n\r\n'), headers.get('content-transfer-encoding')),
          source,
          secure: session.secure,
          client: session.hostNameAppearsAs || '',
        });
        done();
      },
      ...options,
    });
    // Clients that break off make errors here.
    server.on('error', () => undefined);
    await new Promise<void>((resolve, reject) => {
      server.server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    servers.push(
      () =>
        new Promise((resolve) => {
          server.close(resolve);
        }),
    );
    return {
      port: (server.server.address() as AddressInfo).port,
      mails,
      logins,
      /** Returns how many mails were begun, with MAIL FROM. */
      begun: () => begun,
    };
  }

  /** Starts a server that does with each connection what the listener does. */
  async function startRaw(listener: (socket: Socket) => void) {
    const open = new Set<Socket>();
    let accepted = 0;
    const server: Server = createServer((socket) => {
      accepted++;
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => open.delete(socket));
      listener(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    return { port: (server.address() as AddressInfo).port, open: () => open.size, accepted: () => accepted };
  }

  /** Starts a server that gives an answer to each command, or none where that is undefined. */
  const startScript = (answer: (command: string) => string | undefined, greeting = '220 mail.test ESMTP\r\n') =>
    startRaw((socket) => {
      socket.write(greeting);
      let rest = '';
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\r\n');
        rest = lines.pop()!;
        for (const line of lines) {
          const said = answer(line);
          if (said !== undefined) socket.write(said);
        }
      });
    });

  return { start, startRaw, startScript };
}
