import type Docker from 'dockerode';

/** Contents of the engine, by the name or id of each object. */
export interface EngineState {
  containers: string[];
  networks: string[];
  volumes: string[];
  images: string[];
}

export async function engineState(docker: Docker): Promise<EngineState> {
  const { Volumes: volumes } = await docker.listVolumes();
  return {
    containers: (await docker.listContainers({ all: true })).map((one) => `${one.Names[0]} ${one.State}`).toSorted(),
    networks: (await docker.listNetworks()).map((one) => one.Name).toSorted(),
    volumes: volumes.map((one) => one.Name).toSorted(),
    images: (await docker.listImages({ all: true })).flatMap((one) => one.RepoTags ?? [one.Id]).toSorted(),
  };
}
