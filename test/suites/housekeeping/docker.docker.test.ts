import Docker from 'dockerode';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { BUSYBOX_IMAGE, NODE_IMAGE } from '#test/harness/docker-images.ts';
import { engineState } from '#test/harness/docker-state.ts';
import { KEPT, Program } from '#test/harness/program.ts';
import { Application, SERVER } from './application.ts';

/** Number of deployments: more than are kept. */
const DEPLOYMENTS = 15;
const DOCKERFILE = `FROM ${NODE_IMAGE}
WORKDIR /app
COPY version .
RUN echo "${Buffer.from(SERVER).toString('base64')}" | base64 -d > server.cjs
CMD ["node", "server.cjs"]
`;

let docker: Docker;
let program: Program;
let foreign: Foreign;

/** Objects of other programs that resemble the product's: the same kinds of names, and labels of another installation. */
class Foreign {
  readonly #id = newId();
  readonly #containers: Docker.Container[] = [];

  async make(): Promise<void> {
    const labels = {
      'quarterdeck.installation': this.#id,
      'quarterdeck.environment': newId(),
      'quarterdeck.service': newId(),
      'quarterdeck.generation': '1',
      'quarterdeck.instance': '1',
    };
    await docker.createNetwork({ Name: `qd-${this.#id}`, Labels: labels });
    await docker.createVolume({ Name: `qd-${this.#id}`, Labels: labels });
    for (const [name, own] of [
      [`app-z${this.#id.slice(0, 8)}-1-1`, labels],
      [`qd-${this.#id}`, {}],
    ] as const) {
      const container = await docker.createContainer({
        name,
        Image: BUSYBOX_IMAGE,
        Cmd: ['sleep', '1000'],
        Labels: own,
        HostConfig: {
          NetworkMode: `qd-${this.#id}`,
          Mounts: [{ Type: 'volume', Source: `qd-${this.#id}`, Target: '/kept' }],
        },
      });
      await container.start();
      this.#containers.push(container);
    }
    await this.#containers[0]!.commit({ repo: `quarterdeck/${this.#id}`, tag: 'kept', Labels: labels });
  }

  async close(): Promise<void> {
    for (const container of this.#containers) await container.remove({ force: true });
    await docker.getNetwork(`qd-${this.#id}`).remove();
    await docker.getVolume(`qd-${this.#id}`).remove();
    await docker.getImage(`quarterdeck/${this.#id}:kept`).remove();
  }
}

beforeAll(async () => {
  const { socketPath } = inject('docker');
  docker = new Docker({ socketPath });
  foreign = new Foreign();
  await foreign.make();
  program = await Program.start({ QUARTERDECK_RUNTIME: 'docker', DOCKER_HOST: `unix://${socketPath}` });
});
afterAll(async () => {
  await program.close();
  await foreign.close();
});

test(`${DEPLOYMENTS} deployments on Docker leave what one leaves and the kept images, a delete leaves nothing, and what others have there is untouched`, async () => {
  const before = await engineState(docker);
  const application = await Application.make(program, DOCKERFILE);
  application.commit();
  expect(await application.deploy()).toEqual({ state: 'DEPLOYED', error: null });
  await program.keepHouse();
  const own = async () => {
    const state = await engineState(docker);
    return { containers: state.containers.length, networks: state.networks, volumes: state.volumes.length };
  };
  const one = await own();

  for (let n = 2; n <= DEPLOYMENTS; n++) {
    application.commit();
    expect(await application.deploy()).toEqual({ state: 'DEPLOYED', error: null });
  }
  await program.keepHouse();
  expect(await own()).toEqual(one);
  const tags = (await engineState(docker)).images.filter((name) => name.startsWith(`quarterdeck/${application.id}:`));
  expect(tags).toHaveLength(KEPT);
  const ids = await Promise.all(tags.map(async (tag) => (await docker.getImage(tag).inspect()).Id));
  expect(ids.toSorted()).toEqual(await application.releasedImages());
  expect(await program.unfinished()).toEqual([]);

  await application.delete();
  await program.keepHouse();
  expect(await engineState(docker)).toEqual(before);
  expect(await program.unfinished()).toEqual([]);
}, 300_000);

test('the network of a deleted environment stays while a container of somebody else hangs on it, and goes afterwards', async () => {
  const before = await engineState(docker);
  const application = await Application.make(program, DOCKERFILE);
  application.commit();
  expect(await application.deploy()).toEqual({ state: 'DEPLOYED', error: null });
  const guest = await docker.createContainer({
    Image: BUSYBOX_IMAGE,
    Cmd: ['sleep', '1000'],
    HostConfig: { NetworkMode: `qd-${application.environmentId}` },
  });
  await guest.start();
  await application.delete();
  await program.keepHouse();
  expect(await program.unfinished()).toMatchObject([
    { kind: 'ENVIRONMENT', last_error: expect.stringContaining('stays') },
  ]);
  expect((await guest.inspect()).State.Running).toBe(true);
  await guest.remove({ force: true });
  await program.keepHouse();
  expect(await program.unfinished()).toEqual([]);
  expect(await engineState(docker)).toEqual(before);
});
