import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import type { ProcessIdentity } from '#runtimes/tools/shim/identity.ts';
import type { InstanceObservation, LogLine, TaskEnd, TaskSpec, WorkloadSpec } from '#runtimes/runtime.ts';

/** Pretended instance. */
export interface FakeInstance {
  name: string;
  /** Differs between two pretended processes of the instance. */
  process: string;
  startedAt: string;
  /** Start of the process before the present one; undefined if there was none. */
  previousStartedAt?: string;
  restarts: number;
  lastExit: InstanceObservation['lastExit'];
  /** Port of the instance's server, null without a router. */
  port: number | null;
}

/** Result of a pretended build. */
export interface FakeImage {
  serviceId: string;
  /** WORKDIR: paths of the workload may be relative to it. */
  folder: string;
  files: Record<string, string>;
  environment: Record<string, string>;
}

/** Candidate of a service: a release that its cluster is rolling out. */
export interface FakeCandidate {
  spec: WorkloadSpec;
  /** Time in ISO 8601 at which the rollout is over. */
  readyAt: string;
  /** Reason why it never becomes ready; null if it does. */
  problem: string | null;
  /** Generation of the deployment that requested the restart; undefined for a new release. */
  restartedFor?: number;
}

/** Stored state of a service. */
export interface FakeService {
  spec: WorkloadSpec;
  stopped: boolean;
  /** Generation of the deployment that requested the last restart. */
  restartedFor?: number;
  instances: FakeInstance[];
  /** Process whose servers answer for the instances. */
  owner: ProcessIdentity;
  /** Release that a fake cluster is rolling out. */
  candidate?: FakeCandidate;
}

/** Complete course of an execution, fixed when it begins. */
export interface FakeScript {
  exitCode: number | null;
  signal: string | null;
  reason: TaskEnd['reason'];
  lines: { text: string; afterMs: number }[];
  output: string | null;
  /** Duration in milliseconds; null if it does not end by itself. */
  takesMs: number | null;
}

/** Pretended execution: its spec, beginning, course, and its end once that has come. */
export interface FakeTask {
  spec: TaskSpec;
  startedAt: string;
  script: FakeScript;
  end: TaskEnd | null;
}

/** Store of the fake's state. Its methods are synchronous: between two awaits nothing interferes. */
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
  /** Returns the lines from the given index on. */
  readLog(serviceId: string, from: number): LogLine[];
  /** Returns the files that were written below the mount paths of a service. */
  readStorage(serviceId: string): Record<string, string>;
  writeStorage(serviceId: string, files: Record<string, string>): void;
  readTask(serviceId: string, key: string): FakeTask | null;
  writeTask(task: FakeTask): void;
  /** Returns the executions of a service in the order of their beginning. */
  tasks(serviceId: string): FakeTask[];
  deleteTask(serviceId: string, key: string): void;
  /** Removes service, log, storage, executions and images. */
  delete(serviceId: string): void;
}

/** Creates a store that lives as long as this process. */
export function createMemoryStore(): FakeStore {
  const services = new Map<string, string>();
  const images = new Map<string, FakeImage>();
  const logs = new Map<string, LogLine[]>();
  const storage = new Map<string, Record<string, string>>();
  const tasks = new Map<string, Map<string, FakeTask>>();
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
    readStorage: (serviceId) => storage.get(serviceId) ?? {},
    writeStorage: (serviceId, files) => void storage.set(serviceId, files),
    readTask: (serviceId, key) => tasks.get(serviceId)?.get(key) ?? null,
    writeTask: (task) => {
      const { serviceId } = task.spec.identity;
      tasks.set(serviceId, (tasks.get(serviceId) ?? new Map<string, FakeTask>()).set(taskKey(task.spec), task));
    },
    tasks: (serviceId) => [...(tasks.get(serviceId)?.values() ?? [])],
    deleteTask: (serviceId, key) => void tasks.get(serviceId)?.delete(key),
    delete: (serviceId) => {
      for (const kept of [services, logs, storage, tasks]) kept.delete(serviceId);
      for (const [image] of imagesOf(serviceId)) images.delete(image);
    },
  };
}

/**
 * Creates a store in a folder that several processes share: `<service>.json`, `<service>.log`, `images/`, `storage/`, `tasks/<service>/`.
 */
export function createDirectoryStore(directory: string): FakeStore {
  const folder = join(directory, 'images');
  for (const each of [folder, join(directory, 'storage')]) mkdirSync(each, { recursive: true, mode: 0o700 });
  const serviceFile = (serviceId: string) => join(directory, `${serviceId}.json`);
  const logFile = (serviceId: string) => join(directory, `${serviceId}.log`);
  const imageFile = (image: string) => join(folder, `${encodeURIComponent(image)}.json`);
  const storageFile = (serviceId: string) => join(directory, 'storage', `${serviceId}.json`);
  const taskFile = (serviceId: string, key: string) => join(directory, 'tasks', serviceId, `${key}.json`);
  const readTask = (serviceId: string, key: string) => readJson<FakeTask>(taskFile(serviceId, key));
  const names = (path: string) =>
    list(path).flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : []));
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
    readStorage: (serviceId) => readJson<Record<string, string>>(storageFile(serviceId)) ?? {},
    writeStorage: (serviceId, files) => writeAtomically(storageFile(serviceId), JSON.stringify(files)),
    readTask,
    writeTask: (task) => {
      const { serviceId } = task.spec.identity;
      mkdirSync(join(directory, 'tasks', serviceId), { recursive: true, mode: 0o700 });
      writeAtomically(taskFile(serviceId, taskKey(task.spec)), JSON.stringify(task));
    },
    tasks: (serviceId) =>
      names(join(directory, 'tasks', serviceId))
        .flatMap((key) => readTask(serviceId, key) ?? [])
        .toSorted((one, other) => (one.startedAt < other.startedAt ? -1 : 1)),
    deleteTask: (serviceId, key) => rmSync(taskFile(serviceId, key), { force: true }),
    delete: (serviceId) => {
      for (const file of [serviceFile(serviceId), logFile(serviceId), storageFile(serviceId)])
        rmSync(file, { force: true });
      rmSync(join(directory, 'tasks', serviceId), { recursive: true, force: true });
      images(serviceId).forEach(deleteImage);
    },
  };
}

/** Key of an execution among those of its service: the same generation and name are the same execution. */
export const taskKey = ({ identity, name }: TaskSpec): string => `${identity.generation}-${name}`;

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
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
