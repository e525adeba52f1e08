import type Docker from 'dockerode';
import { LABEL } from './labels.ts';
import type { DockerNode } from './node.ts';

type Labels = Record<string, string>;
type Labelled = { Labels?: Labels | null };

/** Scope of a search: an engine, and the installation that owns the objects. */
export type Place = Pick<DockerNode, 'engine' | 'installation'>;

/**
 * Finds the installation's containers with all the given labels: the runtime finds objects in this way only. The engine's filter is checked
 * again here: Podman treats several labels of volumes as alternatives.
 */
export async function findContainers(place: Place, labels: Labels = {}): Promise<Docker.ContainerInfo[]> {
  return ours(place, labels, await place.engine.listContainers({ all: true, filters: filter(place, labels) }));
}

export async function findVolumes(place: Place, labels: Labels): Promise<Docker.VolumeInspectInfo[]> {
  const { Volumes: volumes } = await place.engine.listVolumes({ filters: filter(place, labels) as never });
  return ours(place, labels, volumes ?? []);
}

export async function findNetworks(place: Place, labels: Labels): Promise<Docker.NetworkInspectInfo[]> {
  return ours(place, labels, await place.engine.listNetworks({ filters: filter(place, labels) as never }));
}

export async function findImages(place: Place, labels: Labels): Promise<Docker.ImageInfo[]> {
  return ours(place, labels, await place.engine.listImages({ filters: JSON.stringify(filter(place, labels)) }));
}

const filter = (place: Pick<Place, 'installation'>, labels: Labels): { label: string[] } => ({
  label: Object.entries(wanted(place, labels)).map(([key, value]) => `${key}=${value}`),
});

const wanted = (place: Pick<Place, 'installation'>, labels: Labels): Labels => ({
  ...labels,
  [LABEL.installation]: place.installation,
});

/** Filters for objects that carry all the labels and the installation's. */
export function ours<T extends Labelled>(place: Pick<Place, 'installation'>, labels: Labels, found: T[]): T[] {
  const entries = Object.entries(wanted(place, labels));
  return found.filter((each) => entries.every(([key, value]) => each.Labels?.[key] === value));
}
