/** Objects that `ATTEMPTS` tries to reach. */
export interface Targets {
  /** Files whose content holds a marker. */
  files: string[];
  folders: string[];
  /** Paths of Unix sockets with a listener. */
  sockets: string[];
  /** Pid of a process of the control plane. */
  pid: number;
  /** Text inside everything that must stay hidden. */
  marker: string;
}

/** Results of the attempts by name; a text that begins with `no: ` is a refusal. */
export interface Seen {
  /** Targets that were reached: content, names, an answer. */
  files: string[];
  folders: string[];
  sockets: string[];
  /** Pids of processes whose environment or command line contains the marker. */
  marked: string[];
  /** Open files that lead outside of the sandbox. */
  descriptors: string[];
  pids: number;
  capabilities: string;
  [attempt: string]: unknown;
}

/** Program for the inside of a sandbox: tries to get out and prints one line `RESULT {…}`. Its folder has `targets.json`. */
export const ATTEMPTS = `
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
const { files, folders, sockets, pid, marker } = JSON.parse(readFileSync(new URL('targets.json', import.meta.url), 'utf8'));
const attempt = (work) => { try { return work(); } catch (error) { return 'no: ' + (error.code ?? error.status ?? error.message); } };
const run = (program, ...args) => attempt(() => execFileSync(program, args, { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
const got = (work) => { const found = attempt(work); return typeof found === 'string' && found.startsWith('no: ') ? false : found; };
const answers = (path) => new Promise((resolve) => {
  const socket = connect({ path });
  socket.once('connect', () => { socket.destroy(); resolve(true); });
  socket.once('error', () => resolve(false));
});
const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
const says = (path) => got(() => readFileSync(path, 'latin1').includes(marker));
const opened = [];
for (const path of sockets) if (await answers(path)) opened.push(path);
const first = folders[0];
const result = {
  files: files.filter((path) => says(path)),
  folders: folders.filter((path) => got(() => readdirSync(path).length > 0)),
  sockets: opened,
  marked: pids.filter((one) => one !== String(process.pid) && (says('/proc/' + one + '/environ') || says('/proc/' + one + '/cmdline'))),
  descriptors: readdirSync('/proc/self/fd').map((fd) => attempt(() => readlinkSync('/proc/self/fd/' + fd))).filter((path) => folders.some((folder) => path.startsWith(folder))),
  own: Object.entries(process.env).some(([, value]) => value.includes(marker)),
  pids: pids.length,
  environ: attempt(() => readFileSync('/proc/' + pid + '/environ', 'utf8')),
  memory: attempt(() => readFileSync('/proc/' + pid + '/mem')),
  directory: attempt(() => readdirSync('/proc/' + pid + '/cwd')),
  kill: attempt(() => process.kill(pid, 0)),
  trace: run('perl', '-e', 'exit(syscall(101, 16, ' + pid + ', 0, 0) == 0 ? 0 : 1)'),
  write: attempt(() => writeFileSync(first + '/written', 'x')),
  unmount: run('umount', first),
  lazy: run('umount', '-l', first),
  remount: run('mount', '-o', 'remount,rw', first),
  bind: run('mount', '--bind', '/', '/mnt'),
  user: run('unshare', '--user', '--map-root-user', 'true'),
  spaces: run('unshare', '--mount', 'true'),
  network: run('unshare', '--net', 'true'),
  device: run('mknod', '/tmp/disk', 'b', '1', '0'),
  enter: run('nsenter', '--target', '1', '--mount', 'true'),
  first: attempt(() => readdirSync('/proc/1/root' + first)),
  kernel: attempt(() => writeFileSync('/proc/sys/kernel/panic', '0')),
  passwords: attempt(() => readFileSync('/etc/shadow', 'utf8').split('\\n').filter((line) => /^[^:]+:[$]/.test(line)).length),
  program: attempt(() => writeFileSync('/usr/bin/quarterdeck-mark', 'x')),
  after: folders.filter((path) => got(() => readdirSync(path).length > 0)),
  root: run('perl', '-e', 'mkdir "/tmp/a"; chroot("/tmp/a") or die; chdir("..") for 1..20; chroot(".") or die; print join(",", map { my $d = $_; opendir(H, $d) ? "$d:" . scalar(grep { !/^[.]/ } readdir H) : "$d:closed" } ("/var", "/home", "/root", "/tmp", "/proc", "/dev", "/etc"))'),
  capabilities: /CapEff:\\s*(\\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1],
};
console.log('RESULT ' + JSON.stringify(result));
if (process.argv[2]) setInterval(() => 0, 1000);
`;

/** Parses the result from the lines of a log. */
export const seenIn = (lines: string): Seen => JSON.parse(/^RESULT (.*)$/m.exec(lines)![1]!) as Seen;
