import { mkdirSync, writeFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findProgram } from '#runtimes/host/machine.ts';
import { TestHost, tryMachine } from '#runtimes/host/testing.ts';

/**
 * Runs inside a view and tries to get out of it; prints what it could see or do as one line of JSON. The data directory lies
 * below /var, which views show, so that it is hidden only because the runtime hides it.
 */
const ATTEMPTS = `
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
const [directory, pid] = process.argv.slice(2);
const attempt = (work) => { try { return work(); } catch (error) { return 'no: ' + (error.code ?? error.status ?? error.message); } };
const run = (program, ...args) => attempt(() => execFileSync(program, args, { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
const result = {
  data: attempt(() => readdirSync(directory + '/data')),
  key: attempt(() => readFileSync(directory + '/data/key', 'utf8')),
  settings: attempt(() => readFileSync(directory + '/settings/env', 'utf8')),
  environ: attempt(() => readFileSync('/proc/' + pid + '/environ', 'utf8')),
  kill: attempt(() => process.kill(Number(pid), 0)),
  pids: readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).length,
  unmount: run('umount', directory + '/data'),
  lazy: run('umount', '-l', directory + '/data'),
  remount: run('mount', '-o', 'remount,rw', directory + '/data'),
  user: run('unshare', '--user', '--map-root-user', 'true'),
  spaces: run('unshare', '--mount', 'true'),
  device: run('mknod', '/tmp/disk', 'b', '1', '0'),
  enter: run('nsenter', '--target', '1', '--mount', 'true'),
  first: attempt(() => readdirSync('/proc/1/root' + directory)),
  kernel: attempt(() => writeFileSync('/proc/sys/kernel/panic', '0')),
  passwords: attempt(() => readFileSync('/etc/shadow', 'utf8').split('\\n').filter((line) => /^[^:]+:[$]/.test(line)).length),
  program: attempt(() => writeFileSync('/usr/bin/quarterdeck-mark', 'x')),
  after: attempt(() => readdirSync(directory + '/data')),
  root: run('perl', '-e', 'mkdir "/tmp/a"; chroot("/tmp/a") or die; chdir("..") for 1..20; chroot(".") or die; print join(",", map { my $d = $_; opendir(H, $d) ? "$d:" . scalar(grep { !/^[.]/ } readdir H) : "$d:closed" } ("/var", "/home", "/root", "/tmp", "/proc", "/dev", "/etc"))'),
  capabilities: /CapEff:\\s*(\\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1],
};
console.log('RESULT ' + JSON.stringify(result));
if (process.argv[4]) setInterval(() => 0, 1000);
`;

type Result = Record<string, unknown> & { data: unknown; pids: number };

const { namespaces } = await tryMachine();

describe.skipIf(!namespaces)('a workload', () => {
  let host: TestHost;
  const result = (lines: string): Result => JSON.parse(/^RESULT (.*)$/m.exec(lines)![1]!) as Result;

  beforeAll(async () => {
    host = new TestHost('/var/tmp');
    const settings = join(host.directory, 'settings');
    mkdirSync(settings);
    mkdirSync(host.dataDir);
    writeFileSync(join(settings, 'env'), 'PASSWORD=1', { mode: 0o600 });
    writeFileSync(join(host.dataDir, 'key'), 'the key', { mode: 0o600 });
    await host.start({ hidden: [settings] });
    host.write({
      'attempts.mjs': ATTEMPTS,
      Dockerfile: `FROM x
WORKDIR /app
COPY attempts.mjs .
RUN node attempts.mjs ${host.directory} ${process.pid}
CMD ["node", "attempts.mjs", "${host.directory}", "${process.pid}", "stay"]`,
    });
  });
  afterAll(() => host.close());

  const expectShut = (seen: Result) => {
    for (const what of ['data', 'after']) expect([[], 'no: ENOENT'], what).toContainEqual(seen[what]);
    for (const what of ['key', 'settings', 'environ', 'kill', 'unmount', 'lazy', 'remount', 'kernel'])
      expect(seen[what], what).toMatch(/^no: /);
    for (const what of ['user', 'spaces', 'device', 'enter']) expect(seen[what], what).toMatch(/^no: /);
    expect([0, 'no: EACCES']).toContain(seen['passwords']);
    expect(seen.pids).toBeLessThan(10);
    expect(existsSync('/usr/bin/quarterdeck-mark')).toBe(false);
  };

  test('has no capability and sees neither our data, keys and settings nor other processes, and cannot get out', async () => {
    const { image } = await host.build();
    const handle = await host.apply(host.spec(image, { ports: [], routes: [] }));
    const seen = result(await host.line(handle, /^RESULT/));
    expectShut(seen);
    expect(seen).toMatchObject({ capabilities: '0000000000000000' });
    expect(seen['first']).toMatch(/^no: /);
    expect(seen['root']).toMatch(/^no: /);
  });

  test('neither does a RUN of a build, which has the rights that installing packages takes', async () => {
    const seen = result((await host.build()).log);
    expectShut(seen);
    expect(seen['first']).toMatch(/^no: /);
    if (findProgram('perl'))
      expect(seen['root']).toMatch(/^\/var:0,\/home:0,\/root:(0|closed),\/tmp:0,\/proc:.*,\/dev:0,\/etc:0$/);
  });
});
