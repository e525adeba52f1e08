import { anySignal } from '#kernel/lease-signal.ts';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parseDockerfile, stageIndex, type ParsedDockerfile } from '#runtimes/host/build/dockerfile.ts';
import { emptyConfig, StageBuilder, type BuildContext, type BuiltStage } from '#runtimes/host/build/stage-builder.ts';
import { giveTo, PlainStage, ViewStage, type BuildPlace } from '#runtimes/host/build/stage-tree.ts';
import type { ImageRecord, ImageStore } from '#runtimes/host/images.ts';
import { serviceAccount, type Machine } from '#runtimes/host/machine.ts';
import { tellingNoSpace } from '#runtimes/host/no-space.ts';
import { makeOwnedFolders } from '#runtimes/host/owned-folders.ts';
import { publishFolder } from '#runtimes/host/publish-folder.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { workFolder } from '#runtimes/tools/work-folders.ts';
import { isWithin, kindOf } from '#runtimes/host/view/root-path.ts';
import { withinDisk, type DiskLimits } from '#runtimes/tools/disk-limits.ts';
import { RuntimeError, cancelled, throwIfCancelled, type BuildSpec, type RuntimeContext } from '#runtimes/runtime.ts';

/** Parts of the runtime that a build uses. */
export interface Builder {
  machine: Machine;
  dataDir: string;
  images: ImageStore;
  /** Makes a control group with the build's limits: returns its `cgroup.procs` files and a function that removes it. */
  limit(spec: BuildSpec): { cgroups: string[]; end(): void };
  /** Disk that one build may take; undefined for no limit. */
  disk: DiskLimits | undefined;
}

/** Builds the image of a Dockerfile; returns the existing image if it has the same key. */
export async function buildImage(
  builder: Builder,
  spec: BuildSpec,
  context: RuntimeContext,
): Promise<{ image: string; cached: boolean }> {
  throwIfCancelled(context.signal);
  const image = builder.images.reference(spec.identity.serviceId, spec.cacheKey);
  if (builder.images.find(image)?.mode === builder.machine.mode) return { image, cached: true };
  const target = builder.images.folder(image)!;
  const folder = workFolder(target);
  removeTree(folder);
  // Accounts of services can enter the folder of their own image but list no folder above.
  for (const above of [dirname(dirname(folder)), dirname(folder)]) {
    mkdirSync(above, { recursive: true });
    chmodSync(above, 0o711);
  }
  mkdirSync(folder, { mode: 0o700 });
  if (builder.machine.mode === 'plain' && builder.machine.asRoot)
    chownSync(folder, serviceAccount(spec.identity.serviceId), 0);
  const deadline = AbortSignal.timeout(spec.timeoutSeconds * 1000);
  const { machine } = builder;
  if (machine.mode === 'namespaces' && machine.owned !== null)
    await makeOwnedFolders(machine.owned, machine.tops, machine.tools.unshare);
  const limit = builder.limit(spec);
  try {
    const place = (signal: AbortSignal): BuildPlace => ({
      machine: builder.machine,
      dataDir: builder.dataDir,
      folder,
      serviceId: spec.identity.serviceId,
      cgroups: limit.cgroups,
      signal,
      log: (line: string) => context.log(line),
    });
    const run = async (signal: AbortSignal) => {
      const record = await buildStages(place(signal), spec);
      writeFileSync(join(folder, 'image.json'), JSON.stringify(record));
    };
    const work = { name: 'The build', folders: [folder], disk: folder, limits: builder.disk, run };
    const signal = anySignal([context.signal, deadline]);
    // The free space is checked before the files of a failed build are removed.
    await tellingNoSpace(builder.dataDir, () => withinDisk({ ...work, signal }));
    // Another process may have built the same meanwhile, and run it.
    if (builder.images.find(image)?.mode !== builder.machine.mode) removeTree(target);
    publishFolder(folder, target);
    return { image, cached: false };
  } catch (error) {
    removeTree(folder);
    if (context.signal.aborted) throw cancelled(error);
    if (deadline.aborted)
      throw new RuntimeError('build_failed', `The build did not end within ${spec.timeoutSeconds} s.`, error);
    throw error;
  } finally {
    limit.end();
  }
}

async function buildStages(place: BuildPlace, spec: BuildSpec): Promise<ImageRecord> {
  const { content, context } = readSources(spec);
  const file = await parseDockerfile(content, spec.arguments, spec.identity.organizationId);
  const last = spec.targetStage === null ? file.stages.length - 1 : stageIndex(file.stages, spec.targetStage);
  if (last < 0) throw new RuntimeError('build_failed', `The Dockerfile has no stage "${spec.targetStage}".`);
  const built: (BuiltStage | undefined)[] = [];
  for (const index of neededStages(file, last))
    built[index] = await buildStage(place, spec, file, context, built, index);
  return finish(place, built[last]!);
}

async function buildStage(
  place: BuildPlace,
  spec: BuildSpec,
  file: ParsedDockerfile,
  context: BuildContext,
  built: (BuiltStage | undefined)[],
  index: number,
): Promise<BuiltStage> {
  const stage = file.stages[index]!;
  const base = built[baseOf(file, index)];
  const plain = place.machine.mode === 'plain';
  if (!base)
    place.log(
      plain
        ? `[${stage.line}] FROM ${stage.base}: this machine itself, in plain folders (${place.machine.reason}); programs are the machine's own.`
        : `[${stage.line}] FROM ${stage.base}: this machine itself, in a private copy; programs are the machine's own.`,
    );
  const tree = plain
    ? new PlainStage(place, index, base?.tree ?? null)
    : new ViewStage(place, index, base?.tree ?? null);
  const one: BuiltStage = {
    tree,
    config: structuredClone(base?.config ?? emptyConfig()),
    shell: base?.shell ?? ['/bin/sh', '-c'],
    workdirs: [...(base?.workdirs ?? [])],
  };
  await new StageBuilder({
    file,
    stage,
    built: one,
    context,
    given: spec.arguments,
    secrets: spec.secretMounts,
    stages: built,
    log: (line) => place.log(line),
  }).build();
  return one;
}

/** Returns the index of the stage that a stage starts from; -1 for the machine. */
function baseOf(file: ParsedDockerfile, index: number): number {
  return stageIndex(file.stages.slice(0, index), file.stages[index]!.base);
}

/** Returns the stages that the target stage starts from or copies from, in the order of the file. */
function neededStages(file: ParsedDockerfile, last: number): number[] {
  const needed = new Set<number>();
  const add = (index: number) => {
    if (index < 0 || needed.has(index)) return;
    needed.add(index);
    add(baseOf(file, index));
    for (const { flags } of file.stages[index]!.instructions)
      for (const name of flags['from'] ?? []) add(stageIndex(file.stages.slice(0, index), name));
  };
  add(last);
  return [...needed].sort((a, b) => a - b);
}

/** Removes files that only the build needs, and gives the others to the account that instances run as. */
async function finish(place: BuildPlace, stage: BuiltStage): Promise<ImageRecord> {
  const { machine, folder } = place;
  const uid = serviceAccount(place.serviceId);
  if (stage.tree instanceof PlainStage) {
    renameSync(stage.tree.tree, join(folder, 'tree'));
    removeTree(join(folder, 'trees'));
    if (machine.asRoot) await giveTo(uid, join(folder, 'tree'));
  } else {
    const workdir = `${stage.config.workdir.replace(/\/$/, '')}/`;
    await stage.tree.copy(
      { base: '/', allowed: null, sources: [], ignore: [], destination: workdir, mode: null, inline: {} },
      null,
    );
    if (machine.asRoot) for (const layer of stage.tree.layers) await giveTo(uid, join(folder, layer));
  }
  return {
    format: 1,
    mode: machine.mode,
    layers: stage.tree.layers,
    workdirs: [...new Set(stage.workdirs)],
    uid,
    config: stage.config,
  };
}

/** Returns the Dockerfile's text and the build context, both inside the checkout. Throws RuntimeError `build_failed`. */
function readSources(spec: BuildSpec): { content: string; context: BuildContext } {
  const checkout = realpathSync(spec.directory);
  const folder = inCheckout(checkout, checkout, spec.rootPath, 'directory');
  const dockerfile = inCheckout(checkout, folder, spec.dockerfilePath, 'file');
  const ignoreFile = [`${dockerfile}.dockerignore`, join(folder, '.dockerignore')].find((path) => existsSync(path));
  if (ignoreFile && !isWithin(checkout, realpathSync(ignoreFile)))
    throw new RuntimeError('build_failed', `.dockerignore leads out of the repository.`);
  const ignore = ignoreFile ? readFileSync(ignoreFile, 'utf8').split(/\r?\n/) : [];
  return { content: readFileSync(dockerfile, 'utf8'), context: { folder, checkout, ignore } };
}

function inCheckout(checkout: string, from: string, path: string, kind: 'file' | 'directory'): string {
  const written = join(from, path);
  if (!isWithin(checkout, written)) throw new RuntimeError('build_failed', `"${path}" leads out of the repository.`);
  if (!existsSync(written)) throw new RuntimeError('build_failed', `"${path}" is not in the repository.`);
  const real = realpathSync(written);
  if (!isWithin(checkout, real)) throw new RuntimeError('build_failed', `"${path}" leads out of the repository.`);
  if (kindOf(real) !== kind)
    throw new RuntimeError('build_failed', `"${path}" is not a ${kind} (in ${dirname(path)}).`);
  return real;
}
