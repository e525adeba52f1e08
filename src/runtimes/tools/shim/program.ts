/**
 * The shim: `node program.ts <directory>`, its ShimConfig as JSON on standard input. One small process in a session of its
 * own that keeps another one running, so that what runs outlives the control plane. About 10 MB of its memory are its own;
 * the rest is the program text of Node that all Node processes of the machine share (measured with 6 of them at once).
 */
import { readFileSync, rmSync, writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { createServer, type Socket } from 'node:net';
import { identify, readBootId } from '#runtimes/tools/shim/identity.ts';
import { SOCKET_NAME, type ShimAnswer, type ShimConfig, type ShimRequest } from '#runtimes/tools/shim/state.ts';
import { Supervisor } from '#runtimes/tools/shim/supervisor.ts';

const directory = process.argv[2]!;
const config = JSON.parse(readFileSync(0, 'utf8')) as ShimConfig;
/** The socket's path is relative to this: absolute ones may be longer than the 108 bytes that a socket's name can have. */
process.chdir(directory);
const supervisor = new Supervisor('.', config, identify(process.pid, readBootId())!);
let ending: Promise<void> | null = null;

/** Ends the process, answers, and ends the shim. A second request waits for the first. */
async function stop(graceMs: number): Promise<void> {
  ending ??= supervisor.stop(graceMs);
  await ending;
}

async function answer(request: ShimRequest): Promise<void> {
  if (request.do === 'stop') await stop(request.graceMs);
  if (request.do === 'restart' && !ending) await supervisor.restart(request.graceMs);
  if (request.do === 'replace' && !ending) await supervisor.replace(request);
}

function serve(socket: Socket): void {
  let text = '';
  socket.on('error', () => socket.destroy());
  socket.setEncoding('utf8');
  socket.on('data', (part: string) => {
    text += part;
    if (!text.includes('\n')) return;
    const request = JSON.parse(text) as ShimRequest;
    const state = (): ShimAnswer => supervisor.state;
    const failure = (error: Error): ShimAnswer => ({ error: error.message });
    void answer(request)
      .then(state, failure)
      .then((said) => {
        socket.end(`${JSON.stringify(said)}\n`, () => {
          if (request.do === 'stop') process.exit(0);
        });
      });
  });
}

process.on('SIGTERM', () => void stop(10_000).then(() => process.exit(0)));
process.on('SIGHUP', () => undefined);
rmSync(SOCKET_NAME, { force: true });
createServer(serve).listen(SOCKET_NAME, () => {
  supervisor.start();
  writeSync(1, 'up\n');
  flushCompileCache();
});
