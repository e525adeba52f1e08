import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import type { Lookup } from '#platform/http-client/index.ts';
import {
  checkSmarthost,
  createMailClient,
  isMailAddress,
  type Mail,
  type MailServer,
} from '#platform/mail-client/index.ts';
import { HEADERS, reply, useMailServers } from '#test/harness/mail-server.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const { start, startRaw, startScript } = useMailServers();

const LOOPBACK = { allowedPrivateAddresses: ['127.0.0.0/8'] };
const MAIL: Mail = {
  id: 'one',
  from: 'alerts@example.com',
  to: ['ops@example.com', 'dev@example.org'],
  subject: 'HIGH: a rule',
  text: 'HIGH: a rule\n• shop\n',
};
const at = (port: number, changes: Partial<MailServer> = {}): MailServer => ({
  host: 'localhost',
  port,
  requireTls: false,
  login: null,
  ...changes,
});
const never = new AbortController().signal;
const send = (server: MailServer, mail: Partial<Mail> = {}, options: object = {}, signal = never) =>
  createMailClient({ ...LOOPBACK, ...options }).send(server, { ...MAIL, ...mail }, signal);
const LOGIN = { username: 'alerts', password: 'pass word' };
const TAKEN = { accepted: true, refusal: null };

describe('a mail', () => {
  test('arrives with the headers of a message that a program wrote, and tells nothing of this machine', async () => {
    const { port, mails } = await start();
    expect(await send(at(port))).toEqual(TAKEN);
    const [mail] = mails;
    expect(mail).toMatchObject({ from: MAIL.from, to: MAIL.to, secure: true, client: 'example.com' });
    expect(Object.fromEntries(mail!.headers)).toMatchObject({
      from: MAIL.from,
      to: 'ops@example.com, dev@example.org',
      subject: MAIL.subject,
      'message-id': '<one@example.com>',
      'auto-submitted': 'auto-generated',
      'content-type': 'text/plain; charset=utf-8',
    });
    expect(Math.abs(Date.parse(mail!.headers.get('date')!) - Date.now())).toBeLessThan(60_000);
    expect([...mail!.headers.keys()].sort()).toEqual(HEADERS);
    expect(mail!.source).not.toContain(hostname());
  });

  test('keeps its text whatever that is: it ends neither headers nor the mail', async () => {
    const { port, mails } = await start();
    const text = 'one\r\n.\r\nMAIL FROM:<evil@example.com>\r\n\r\nBcc: evil@example.com\n';
    const subject = 'a rule\r\nBcc: evil@example.com\r\n\r\nbody';
    expect(await send(at(port), { text, subject })).toEqual(TAKEN);
    expect(mails).toHaveLength(1);
    expect(mails[0]!.to).toEqual(MAIL.to);
    expect(mails[0]!.headers.has('bcc')).toBe(false);
    expect(mails[0]!.headers.get('subject')).toContain('a rule');
    expect(mails[0]!.body).toBe(text.replaceAll(/\r?\n/g, '\r\n'));
  });

  test('with an address that carries a header or a command is sent to nobody', async () => {
    const { port, mails, begun } = await start();
    await expect(send(at(port), { to: ['a@b.co>\r\nRCPT TO:<evil@b.co'] })).rejects.toThrow();
    await expect(send(at(port), { from: 'a@b.co\r\nBcc: evil@b.co' })).rejects.toThrow();
    expect([mails.length, begun()]).toEqual([0, 0]);
  });

  test.each(['a@b.co', 'a.b+c@sub.example.com', 'o\'neil@example.com', 'x@localhost', 'a@xn--bcher-kva.example'])(
    '%s is an address',
    (address) => expect(isMailAddress(address)).toBe(true),
  ); // prettier-ignore

  test.each([
    '', 'a', '@b.co', 'a@', 'a@b@c.co', 'a b@c.co', 'Ops <a@b.co>', '<a@b.co>', '"a"@b.co', '"a@b.co"@c.co', 'a@b.co(x)',
    'a@[127.0.0.1]', 'a@b..co', '.a@b.co', 'a.@b.co', 'a@-b.co', 'a@b.co\n', 'a\r\nb@c.co', 'a@b.co,c@d.co', 'a@bü.co', 'ä@b.co',
    `${'a'.repeat(65)}@b.co`, `a@${'b'.repeat(64)}.co`, `a@${'b.'.repeat(150)}co`,
  ])('%j is none', (address) => expect(isMailAddress(address)).toBe(false)); // prettier-ignore
});

describe('TLS', () => {
  test('is used where the server offers it, and a login goes over it', async () => {
    const { port, mails, logins } = await start({ password: LOGIN.password });
    expect(await send(at(port, { login: LOGIN }))).toEqual(TAKEN);
    expect(logins).toEqual([LOGIN]);
    expect(mails[0]!.secure).toBe(true);
  });

  test('on port 465 comes before the first word', async ({ skip }) => {
    const server = await start({ secure: true, port: 465, password: LOGIN.password }).catch(() => undefined);
    skip(server === undefined, 'this account may not listen on port 465, or it is in use');
    expect(await send(at(465, { login: LOGIN }))).toEqual(TAKEN);
    expect(server!.mails).toHaveLength(1);
    await expect(send(at(465, { host: '127.0.0.1' }))).rejects.toMatchObject({ failure: 'tls' });
  });

  test('with a certificate that is not trusted, or for another name, ends the connection', async () => {
    const strange = await start(selfSigned());
    await expect(send(at(strange.port))).rejects.toMatchObject({
      failure: 'tls',
      message: expect.stringMatching(/^The certificate of localhost:\d+ is not trusted: /),
    });
    const known = await start();
    await expect(send(at(known.port, { host: '127.0.0.1' }))).rejects.toMatchObject({ failure: 'tls' });
    expect([strange.begun(), known.begun()]).toEqual([0, 0]);
  });

  test('is missing at a server that offers none: it gets the mail only if that is allowed', async () => {
    const { port, mails, begun } = await start({ hideSTARTTLS: true, disabledCommands: ['STARTTLS', 'AUTH'] });
    await expect(send(at(port, { requireTls: true }))).rejects.toMatchObject({
      failure: 'tls',
      message: `localhost:${port} offers no TLS (STARTTLS), without which nothing is sent to it.`,
    });
    expect(begun()).toBe(0);
    expect(await send(at(port))).toEqual(TAKEN);
    expect(mails[0]!.secure).toBe(false);
  });

  test('is what a login waits for, also where a server without it is allowed', async () => {
    const offers = await start({
      password: LOGIN.password,
      hideSTARTTLS: true,
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
    });
    await expect(send(at(offers.port, { login: LOGIN }))).rejects.toMatchObject({ failure: 'tls' });
    expect([offers.logins, offers.begun()]).toEqual([[], 0]);
    const heard: string[] = [];
    const strips = await startScript((command) => {
      heard.push(command);
      return command.startsWith('EHLO') ? '250-mail.test\r\n250 AUTH PLAIN LOGIN\r\n' : '250 fine\r\n';
    });
    await expect(send(at(strips.port, { login: LOGIN }), {}, { timeoutMs: 500 })).rejects.toThrow('did not answer');
    expect(heard.join('\n')).not.toMatch(/AUTH|MAIL/);
  });

  test('that a server announces with words already in front of it gets none of them', async () => {
    const heard: string[] = [];
    const { port } = await startScript((command) => {
      heard.push(command);
      if (command.startsWith('EHLO')) return '250-mail.test\r\n250 STARTTLS\r\n';
      return command === 'STARTTLS'
        ? '220 go\r\n250-mail.test\r\n250 AUTH PLAIN\r\n235 welcome\r\n250 fine\r\n'
        : undefined;
    });
    await expect(send(at(port, { login: LOGIN }), {}, { timeoutMs: 500 })).rejects.toThrow('did not answer');
    expect(heard.join('\n')).not.toMatch(/AUTH|MAIL/);
  });
});

describe('a refusal', () => {
  test('of a login tells the codes and nothing else that the server said', async () => {
    const { port, begun } = await start({ password: 'another' });
    const { accepted, refusal } = await send(at(port, { login: LOGIN }));
    expect({ accepted, refusal }).toEqual({ accepted: false, refusal: 'answered 535 5.7.8 to the login' });
    expect(begun()).toBe(0);
  });

  test('of the login itself keeps the mail from being sent without one', async () => {
    const { port, mails } = await start();
    expect(await send(at(port, { login: LOGIN }))).toMatchObject({
      accepted: false,
      refusal: expect.stringMatching(/^answered 5\d\d.* to the login$/),
    });
    expect(mails).toEqual([]);
  });

  test('of one recipient leaves the mail to the others, and of all of them leaves none', async () => {
    const some = await start({
      refuses: (to) => (to === 'dev@example.org' ? reply(550, '5.1.1 No such user.') : undefined),
    });
    expect(await send(at(some.port))).toEqual({
      accepted: true,
      refusal: 'answered 550 5.1.1 No such user to the recipient dev@example.org',
    });
    expect(some.mails[0]!.to).toEqual(['ops@example.com']);
    const none = await start({ refuses: () => reply(451, 'Greylisted') });
    expect(await send(at(none.port))).toEqual({
      accepted: false,
      refusal: 'answered 451 Greylisted to the recipient ops@example.com and refused 1 more',
    });
    expect(none.mails).toEqual([]);
  });

  test.each([452, 554])('with %i of the whole mail is told', async (code) => {
    const { port } = await start({ refusesMail: () => reply(code, 'Not now') });
    expect(await send(at(port))).toEqual({ accepted: false, refusal: `answered ${code} Not now` });
  });

  test('before the first command is told', async () => {
    const { port } = await startScript(() => undefined, '554-no\r\n554 service for you\r\n');
    expect(await send(at(port))).toEqual({ accepted: false, refusal: 'answered 554 no service for you' });
  });

  test('is shown on one line of printable characters, however long it is', async () => {
    const hostile = `550-\u001b[2J\u0007\u202e${'x'.repeat(5_000)}\r\n550 \u0000\u009b31m <script>\r\n`;
    const { port } = await startScript((command) =>
      command.startsWith('EHLO') ? '250 mail.test\r\n' : Buffer.from(hostile).toString('latin1'),
    );
    const { accepted, refusal } = await send(at(port));
    expect(accepted).toBe(false);
    expect(refusal!.length).toBeLessThan(300);
    expect(refusal).toMatch(/^answered 550 [^\p{Cc}\u202e]+$/u);
  });
});

describe('a server that does not speak SMTP', () => {
  test.each([
    'HTTP/1.1 400 Bad Request\r\nserver: internal-thing\r\n\r\n',
    'SSH-2.0-OpenSSH_9.9 internal-thing\r\n',
    `${'\u0000\u00ff\u0016\u0003'.repeat(50)}\r\n`,
    '{"internal":"thing"}\r\n\r\n',
    '250 internal-thing\r\n',
  ])('is called so, and nothing is shown of %j', async (greeting) => {
    const { port } = await startScript(() => greeting, greeting);
    await expect(send(at(port))).rejects.toMatchObject({
      failure: 'connection',
      message: `localhost:${port} answered something that is not SMTP.`,
    });
  });

  test.each(['\n', 'x', '250-more\r\n', '250 fine\r\n'])('and sends %j without an end is cut off', async (piece) => {
    const { port, open } = await startRaw((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(piece.repeat(10_000)));
      };
      socket.on('drain', more);
      more();
    });
    await expect(send(at(port))).rejects.toMatchObject({ failure: 'connection' });
    await expect.poll(open).toBe(0);
  });

  test('over TLS and sends lines without an end is cut off', async () => {
    const { port } = await start({
      onConnect(_session, done) {
        done();
      },
      onSecure(socket, _session, done) {
        const more = () => {
          while (!socket.destroyed && socket.write('\n'.repeat(10_000)));
        };
        socket.on('drain', more);
        more();
        done();
      },
    });
    await expect(send(at(port))).rejects.toMatchObject({ failure: 'connection' });
  });

  test('and closes the connection is told as such', async () => {
    const { port } = await startRaw((socket) => void socket.end());
    await expect(send(at(port))).rejects.toMatchObject({ failure: 'connection' });
    const late = await startScript((command) => (command.startsWith('EHLO') ? '250 mail.test\r\n' : '2'));
    await expect(send(at(late.port), {}, { timeoutMs: 200 })).rejects.toMatchObject({ failure: 'timeout' });
  });
});

describe('a server that hangs', () => {
  const answers = (until: string) => (command: string) => {
    if (command.startsWith(until)) return undefined;
    if (command.startsWith('EHLO')) return `250-mail.test\r\n250 ${until === 'TLS' ? 'STARTTLS' : 'SIZE'}\r\n`;
    if (command === 'STARTTLS') return '220 go\r\n';
    return command === 'DATA'
      ? '354 go\r\n'
      : command === '.' || /^(MAIL|RCPT)/.test(command)
        ? '250 fine\r\n'
        : undefined;
  };
  const hanging = {
    'before its greeting': () => startRaw(() => undefined),
    'after EHLO': () => startScript(answers('EHLO')),
    'in the handshake of TLS': () => startScript(answers('TLS')),
    'after MAIL FROM': () => startScript(answers('MAIL')),
    'at the end of DATA': () => startScript(answers('.')),
    'but drips a byte now and then': () =>
      startRaw((socket) => {
        const timer = setInterval(() => socket.write('2'), 20);
        socket.once('close', () => clearInterval(timer));
      }),
  };

  test.each(Object.entries(hanging))('%s is given up at the deadline, and its connection closed', async (_, begin) => {
    const { port, open, accepted } = await begin();
    await expect(send(at(port), {}, { timeoutMs: 1_000 })).rejects.toMatchObject({
      failure: 'timeout',
      message: `localhost:${port} did not answer within 1000 ms.`,
    });
    expect(accepted()).toBe(1);
    await expect.poll(open).toBe(0);
  });

  test.each(Object.entries(hanging))('%s is left at the signal', async (_, begin) => {
    const { port, open } = await begin();
    const controller = new AbortController();
    const sent = send(at(port), {}, {}, controller.signal);
    const outcome = expect(sent).rejects.toThrow('that is enough');
    await expect.poll(open).toBe(1);
    controller.abort(new Error('that is enough'));
    await outcome;
    await expect.poll(open).toBe(0);
  });

  test('is not called at all with a signal that is over', async () => {
    const { port, accepted } = await startRaw(() => undefined);
    await expect(send(at(port), {}, {}, AbortSignal.abort(new Error('over')))).rejects.toThrow('over');
    expect(accepted()).toBe(0);
  });
});

describe('the address of a server', () => {
  const answering =
    (...answers: string[]): Lookup =>
    async () => [{ address: answers.shift() ?? 'none left', family: 4 }];

  test.each(['127.0.0.1:25', '10.1.2.3:587', '[::1]:25', '169.254.169.254:25', '2130706433:25', '0x7f.1:587', '[fd00::1]:465'])(
    '%s is 400, because it is a private address',
    (smarthost) => expect(() => checkSmarthost(smarthost, 'smarthost', [])).toThrow(/^smarthost: .*private, local or reserved/),
  ); // prettier-ignore

  test.each([
    '', 'mail.example.com', 'mail.example.com:', ':25', 'mail.example.com:0', 'mail.example.com:65536', 'mail.example.com:25x', '::1:25',
    'smtp://mail.example.com:25', 'a@mail.example.com:25', 'mail example:25', 'mail\r\n.example:25', 'mail.example.com:-25', '[::1:25',
  ])('%j is 400, because it is none', (smarthost) =>
    expect(() => checkSmarthost(smarthost, 'smarthost', [])).toThrow(/^smarthost: must be host:port|is not a host name/),
  ); // prettier-ignore

  test('has a port of mail, but for the addresses that the operator allows', () => {
    for (const port of [25, 465, 587, 2525]) checkSmarthost(`mail.example.com:${port}`, 'smarthost', []);
    for (const host of ['mail.example.com', '1.1.1.1'])
      expect(() => checkSmarthost(`${host}:6379`, 'smarthost', [])).toThrow(
        /^smarthost: the port must be 25, 465, 587 or 2525/,
      );
    expect(() => checkSmarthost('1.1.1.1:6379', 'smarthost', ['10.0.0.0/8'])).toThrow(/the port must be/);
    checkSmarthost('10.0.0.5:1025', 'smarthost', ['10.0.0.0/8']);
    checkSmarthost('mail.internal:1025', 'smarthost', ['10.0.0.0/8']);
  });

  test('is checked once it is resolved, for the connection that is made', async () => {
    const { port, accepted } = await startRaw(() => undefined);
    const to = (allowedPrivateAddresses: string[], ...addresses: string[]) =>
      send(
        at(port, { host: 'mail.test' }),
        {},
        { allowedPrivateAddresses, lookup: answering(...addresses), timeoutMs: 1_000 },
      );
    await expect(to(['10.0.0.0/8'], '127.0.0.1')).rejects.toMatchObject({
      failure: 'forbidden_address',
      message: expect.not.stringContaining('127.0.0.1'),
    });
    // A public address at a port that is not for mail.
    await expect(to(['10.0.0.0/8'], '1.1.1.1')).rejects.toMatchObject({
      failure: 'forbidden_address',
      message: expect.stringContaining('the port must be'),
    });
    expect(accepted()).toBe(0);
    // The second answer of the name would be refused: it is not asked for.
    await expect(to(['127.0.0.0/8'], '127.0.0.1', '1.1.1.1')).rejects.toMatchObject({ failure: 'timeout' });
    expect(accepted()).toBe(1);
  });

  test('that is refused or leads nowhere is told', async () => {
    await expect(send(at(25, { host: '10.1.2.3' }))).rejects.toMatchObject({ failure: 'forbidden_address' });
    const nowhere = async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
    await expect(send(at(25, { host: 'mail.test' }), {}, { lookup: nowhere })).rejects.toMatchObject({
      failure: 'unknown_host',
    });
    const { port } = await startRaw(() => undefined);
    await expect(send(at(port), {}, { lookup: answering('127.0.0.2') })).rejects.toMatchObject({
      failure: 'connection',
    });
  });
});
