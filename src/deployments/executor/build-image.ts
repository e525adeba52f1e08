import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { declaredVariables, filesOf, readOf, writeOwn } from '#deployments/executor/checkout-files.ts';
import { checkout, checkoutDirectory } from '#deployments/executor/checkouts.ts';
import { sourcesOf } from '#deployments/executor/run-context.ts';
import { identityOf, kindOf, type ServiceWork, type StepContext } from '#deployments/executor/service-work.ts';
import type { BuildRecipe } from '#deployments/model/kind.ts';
import { UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import type { BuildContext, BuildSpec, RuntimeContext } from '#runtimes/runtime.ts';

/** Builds the image of a service from its checkout, by the recipe of its kind. */
export async function buildImage(work: ServiceWork, context: StepContext): Promise<{ image: string }> {
  const { run, runtime, service } = work;
  const { settings } = run.parts.platform;
  // Nothing is resolved of what has no source.
  const { commit, image = null } = run.resolution.services[service.serviceId] ?? {};
  const { organizationId } = run.scope;
  const recipe = kindOf(work).build?.(service, { organizationId, runtime: runtime.name, settings, image });
  if (!recipe || !runtime.build)
    throw new Error(`The runtime ${runtime.name} cannot build images: use a cluster that can.`);
  const directory = checkoutDirectory(work);
  // An earlier attempt may have checked out, perhaps on another machine: in this one's folder it is made again.
  if (!existsSync(directory)) await checkout(work, context);
  const { secrets } = work.variables!;
  // What is pretended may have been checked out as an empty folder.
  const isEmpty = runtime.pretends === true && (await readdir(directory)).length === 0;
  const prepared = isEmpty ? { ...recipe, ...NOTHING } : await prepare(work, recipe, directory, context.log);
  const { dockerfile, generated, ...recipeOf } = prepared;
  const cacheKey = createHash('sha256')
    .update(
      JSON.stringify([
        commit?.id ?? image,
        prepared.rootPath,
        generated ?? (typeof dockerfile === 'string' ? dockerfile : prepared.dockerfilePath),
        prepared.targetStage,
        prepared.arguments,
      ]),
    )
    .digest('hex')
    .slice(0, 32);
  const { isFork: isUntrusted } = run.claim.names;
  const spec = { identity: identityOf(work), directory, ...recipeOf, cacheKey, secrets, isUntrusted };
  const limit = `${recipe.timeoutSeconds} seconds (build.timeout_max_sec)`;
  const late = (cause: unknown) => new Error(`The build took longer than ${limit} and was ended.`, { cause });
  const built = await withDeadline(
    context.signal,
    { seconds: recipe.timeoutSeconds, patience: () => UNWIND_SECONDS, late },
    (deadline) => runtime.build!(spec, buildContext(work, { ...context, signal: deadline.signal })),
  );
  context.log(built.cached ? `The image is there already: ${built.image}` : `Built ${built.image}`);
  await rm(directory, { recursive: true, force: true });
  return { image: built.image };
}

/** Returns the context of a build, which checks images and hosts on behalf of the service's organization. */
function buildContext({ run }: ServiceWork, context: RuntimeContext): BuildContext {
  const { organizationId } = run.scope;
  const { isFork: isUntrusted } = run.claim.names;
  const { signal } = context;
  const sources = sourcesOf(run);
  return {
    ...context,
    resolveImage: (name, platform) => sources.resolveBase({ organizationId, isUntrusted, name, platform, signal }),
    checkHost: (host) => sources.checkHost(host),
  };
}

/** Variables of its service that a build has, and the text of a Dockerfile that is generated for it. */
type Taken = Pick<BuildSpec, 'arguments' | 'secretMounts'> & { generated: string | undefined };

const NOTHING: Taken = { generated: undefined, arguments: {}, secretMounts: {} };

/** Writes the Dockerfile of kinds that generate it into the checkout, and reads what the Dockerfile takes. */
async function prepare(
  work: ServiceWork,
  recipe: BuildRecipe,
  directory: string,
  log: (line: string) => void,
): Promise<BuildRecipe & Taken> {
  const { dockerfile: made } = recipe;
  const { variables } = work.variables!;
  const generated =
    typeof made === 'string' ? { text: made } : await made?.(filesOf(directory), Object.keys(variables));
  const { text, ignore, notes = [], ...paths } = generated ?? {};
  const chosen = { ...recipe, ...paths };
  const file = path.join(chosen.rootPath, chosen.dockerfilePath);
  if (text !== undefined) await writeOwn(directory, file, text);
  if (typeof ignore === 'string') await writeOwn(directory, `${file}.dockerignore`, ignore);
  for (const note of notes) log(note);
  const read = { name: recipe.dockerfilePath, text: await readOf(directory, file, missingDockerfile(work, recipe)) };
  const taken = await declaredVariables(work.run.scope.organizationId, read, variables);
  return { ...chosen, ...taken, generated: text };
}

/** Returns the message for a missing Dockerfile, with what to do. */
function missingDockerfile({ run, service }: ServiceWork, { rootPath, dockerfilePath }: BuildRecipe): string {
  const source = kindOf({ run, service }).source(service);
  const where = source?.type === 'git' ? `branch ${source.branch} of ${source.url}` : 'the source';
  return `No file "${dockerfilePath}" at ${rootPath} of ${where}: commit one there, or set dockerfile_path and root_path.`;
}
