import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, expect, inject, test } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { startService, useInstallation } from '#cli/testing.ts';
import { readSettings } from '#platform/settings/index.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';
import { removeEverything } from '#test/harness/remove-everything.ts';
import { connectTo } from '#test/harness/sockets.ts';
import { freePort } from '#test/harness/free-port.ts';

const { home, settings, here } = useInstallation('machines');
const secondHome = mkdtempSync(path.join(tmpdir(), 'qd-machines-second-'));
chmodSync(secondHome, 0o755);

/** Settings of a machine, whose API listens on a port that is known beforehand. */
async function machine(dataDir: string): Promise<Record<string, string>> {
  const port = String(await freePort());
  return {
    ...settings,
    ...MADE_IMAGES,
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_RUNTIME: 'host',
    QUARTERDECK_LOCAL_GIT_ROOTS: path.dirname(inject('example')),
    QUARTERDECK_TERRAFORM_STATE_PORT: '0',
    QUARTERDECK_PORT: port,
    QUARTERDECK_MACHINE_URL: `http://127.0.0.1:${port}`,
  };
}

afterAll(async () => {
  const [{ id } = { id: 'none' }] = await here('select id from installation');
  for (const dataDir of [home, secondHome]) {
    const runtimes = createRuntimes(readSettings({ ...settings, QUARTERDECK_DATA_DIR: dataDir }), String(id), pino({ level: 'silent' })); // prettier-ignore
    if (dataDir === home) await removeEverything(await runtimes.onMachine('host'));
    await runtimes.close();
    await runtimes.endProxy();
  }
  rmSync(secondHome, { recursive: true, force: true });
});

test(
  'a machine answers what only another one has, says which one is away when that is killed, and answers again when it is back',
  { timeout: 180_000 },
  async () => {
    const firstSettings = await machine(home);
    const first = await startService(firstSettings, { isKilled: true });
    const second = await startService(await machine(secondHome));
    const nodeOf = (dataDir: string) => readFileSync(path.join(dataDir, 'node-id'), 'utf8').trim();
    expect(nodeOf(secondHome)).not.toBe(nodeOf(home));
    const token = readFileSync(path.join(home, 'admin-token'), 'utf8').trim();
    const ask = async (url: string, method: string, route: string, body?: object) => {
      const headers = { authorization: `Token ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) };
      const answer = await fetch(url + route, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
      return { status: answer.status, body: (await answer.json()) as any };
    };
    const make = async (route: string, body: object) => (await ask(second.url, 'POST', route, body)).body.id as string;

    const organization = (await ask(second.url, 'GET', '/organization')).body.id as string;
    const project = await make(`/organization/${organization}/project`, { name: 'p' });
    const environment = await make(`/project/${project}/environment`, { name: 'e', mode: 'DEVELOPMENT' });
    const application = await make(`/environment/${environment}/application`, {
      name: 'hello',
      git_repository: { url: inject('example'), branch: 'HEAD' },
      dockerfile_path: 'Dockerfile',
      ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
    });
    const deployed = await ask(second.url, 'POST', `/environment/${environment}/deploy?wait=60`);
    expect(deployed.body).toMatchObject({ state: 'DEPLOYED' });

    const log = (url: string) => ask(url, 'GET', `/application/${application}/log?tail=5`);
    const answer = await log(second.url);
    expect([answer.status, answer.body.results.map(({ message }: { message: string }) => message)]).toEqual([
      200,
      ['listening on 3000'],
    ]);
    expect(answer).toEqual(await log(first.url));

    const shell = (command: string[]) =>
      connectTo(second.url.replace('http:', 'ws:'), '/shell/exec', { service: application, command }, { token });
    const echo = await shell(['sh', '-c', 'echo "in $PORT"; ls']);
    expect((await echo.closed).reason).toBe('exit status 0');
    expect(String(echo.bytes())).toMatch(/^in 3000\n[^]*server\.js\n/);

    const open = await shell(['cat']);
    open.socket.send('still here\n');
    await expect.poll(() => String(open.bytes())).toBe('still here\n');
    first.kill('SIGKILL');
    expect(await first.ended).toBe(null);
    expect((await open.closed).code).toBe(1006);
    const { host } = new URL(firstSettings.QUARTERDECK_MACHINE_URL!);
    const message = `This is on the machine ${nodeOf(home)}, which cannot be asked from here: ${host} could not be reached: connect ECONNREFUSED ${host}.`;
    expect(await log(second.url)).toMatchObject({ status: 502, body: { message } });

    await startService(firstSettings);
    expect(await log(second.url)).toEqual(answer);
  },
);
