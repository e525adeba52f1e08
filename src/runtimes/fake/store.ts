import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '#runtimes/tools/shim/identity.ts';
import { readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';
import type { InstanceObservation, LogLine, WorkloadSpec } from '#runtimes/runtime.ts';

/** One pretended instance. */
export interface FakeInstance {
  name: string;
  /** Differs between two pretended processes of the instance. */
  process: string;
  startedAt: string;
  restarts: number;
  lastExit: InstanceObservation['lastExit'];
  /** Port of its server, null without a router. */
  port: number | null;
}

/** What a pretended build made. */
export interface FakeImage {
  serviceId: string;
  /** WORKDIR: paths of the workload may be relative to it. */
  folder: string;
  files: Record<string, string>;
  environment: Record<string, string>;
}

/** Everything the fake knows of a service. */
export interface FakeService {
  spec: WorkloadSpec;
  stopped: boolean;
  /** Generation of the deployment that its instances were restarted for. */
  restartedFor?: number;
  instances: FakeInstance[];
  /** Files that the workload wrote below its mount paths. */
  storage: Record<string, string>;
  /** The process whose servers answer for the instances. */
  owner: ProcessIdentity;
}

/** Where the fake keeps its state. All of it is synchronous: between two awaits nothing interferes. */
export interface FakeStore {
  read(serviceId: string): FakeService | null;
  write(service: FakeService): void;
  all(): FakeService[];
  readImage(image: string): FakeImage | null;
  writeImage(image: string, content: FakeImage): void;
  /** Names of the images of a service. */
  images(serviceId: string): string[];
  deleteImage(image: string): void;
  appendLog(serviceId: string, line: LogLine): void;
  /** Lines from the given index on. */
  readLog(serviceId: string, from: number): LogLine[];
  /** Removes service, log and images. */
  delete(serviceId: string): void;
}

/** State that lives as long as this process. */
export function createMemoryStore(): FakeStore {
  const services = new Map<string, string>();
  const images = new Map<string, FakeImage>();
  const logs = new Map<string, LogLine[]>();
  const imagesOf = (serviceId: string) => [...images].filter(([, image]) => image.serviceId === serviceId);
  const parse = (text: string): FakeService => JSON.parse(text) as FakeService;
  return {
    read: (serviceId) => (services.has(serviceId) ? parse(services.get(serviceId)!) : null),
    write: (service) => void services.set(service.spec.identity.serviceId, JSON.stringify(service)),
    all: () => [...services.values()].map(parse),
    readImage: (image) => images.get(image) ?? null,
    writeImage: (image, content) => void images.set(image, content),
    images: (serviceId) => imagesOf(serviceId).map(([image]) => image),
    deleteImage: (image) => void images.delete(image),
    appendLog: (serviceId, line) => void logs.set(serviceId, [...(logs.get(serviceId) ?? []), line].slice(-10_000)),
    readLog: (serviceId, from) => (logs.get(serviceId) ?? []).slice(from),
    delete: (serviceId) => {
      services.delete(serviceId);
      logs.delete(serviceId);
      for (const [image] of imagesOf(serviceId)) images.delete(image);
    },
  };
}

/** State in a folder, so that another process sees it: `<service>.json`, `<service>.log`, `images/<name>.json`. */
export function createDirectoryStore(directory: string): FakeStore {
  const folder = join(directory, 'images');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const serviceFile = (serviceId: string) => join(directory, `${serviceId}.json`);
  const logFile = (serviceId: string) => join(directory, `${serviceId}.log`);
  const imageFile = (image: string) => join(folder, `${encodeURIComponent(image)}.json`);
  const names = (path: string) =>
    readdirSync(path).flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : []));
  const readImage = (image: string) => readJson<FakeImage>(imageFile(image));
  const images = (serviceId: string) =>
    names(folder)
      .map(decodeURIComponent)
      .filter((image) => readImage(image)?.serviceId === serviceId);
  const deleteImage = (image: string) => rmSync(imageFile(image), { force: true });
  return {
    read: (serviceId) => readJson<FakeService>(serviceFile(serviceId)),
    write: (service) => writeAtomically(serviceFile(service.spec.identity.serviceId), JSON.stringify(service)),
    all: () => names(directory).flatMap((serviceId) => readJson<FakeService>(serviceFile(serviceId)) ?? []),
    readImage,
    writeImage: (image, content) => writeAtomically(imageFile(image), JSON.stringify(content)),
    images,
    deleteImage,
    appendLog: (serviceId, line) => appendFileSync(logFile(serviceId), `${JSON.stringify(line)}\n`, { mode: 0o600 }),
    readLog: (serviceId, from) => readLines(logFile(serviceId), from),
    delete: (serviceId) => {
      rmSync(serviceFile(serviceId), { force: true });
      rmSync(logFile(serviceId), { force: true });
      images(serviceId).forEach(deleteImage);
    },
  };
}

function readLines(path: string, from: number): LogLine[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return lines.slice(from).map((line) => JSON.parse(line) as LogLine);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
