import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { declaredArguments, filesOf, readOf, writeOwn } from '#deployments/executor/checkout-files.ts';
import { checkout, checkoutDirectory } from '#deployments/executor/checkouts.ts';
import { sourcesOf } from '#deployments/executor/run-context.ts';
import { identityOf, kindOf, type ServiceWork, type StepContext } from '#deployments/executor/service-work.ts';
import type { BuildRecipe } from '#deployments/model/kind.ts';
import { UNWIND_SECONDS, withDeadline } from '#kernel/deadline.ts';
import type { BuildContext, RuntimeContext } from '#runtimes/runtime.ts';

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
  const { dockerfile: made, ...recipeOf } = recipe;
  // What is pretended may have been checked out as an empty folder.
  const isEmpty = runtime.pretends === true && (await readdir(directory)).length === 0;
  const generated = isEmpty ? undefined : await generate(work, recipe, directory, context.log);
  const args = isEmpty ? {} : await argumentsOf(work, recipe, directory);
  const cacheKey = createHash('sha256')
    .update(
      JSON.stringify([
        commit?.id ?? image,
        recipe.rootPath,
        generated ?? (typeof made === 'string' ? made : recipe.dockerfilePath),
        recipe.targetStage,
        args,
      ]),
    )
    .digest('hex')
    .slice(0, 32);
  const { isFork: isUntrusted } = run.claim.names;
  const spec = { identity: identityOf(work), directory, ...recipeOf, arguments: args, cacheKey, secrets, isUntrusted };
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

/** Writes the Dockerfile of kinds that generate it into the checkout; returns its text, undefined where the checkout has its own. */
async function generate(
  work: ServiceWork,
  recipe: BuildRecipe,
  directory: string,
  log: (line: string) => void,
): Promise<string | undefined> {
  const { dockerfile: made } = recipe;
  const names = Object.keys(work.variables!.variables);
  const generated = typeof made === 'string' ? { text: made } : await made?.(filesOf(directory), names);
  if (!generated) return undefined;
  const { text, ignore, notes = [] } = generated;
  await writeOwn(directory, pathOf(recipe), text);
  if (typeof ignore === 'string') await writeOwn(directory, `${pathOf(recipe)}.dockerignore`, ignore);
  for (const note of notes) log(note);
  return text;
}

const pathOf = ({ rootPath, dockerfilePath }: BuildRecipe): string => path.join(rootPath, dockerfilePath);

async function argumentsOf(work: ServiceWork, recipe: BuildRecipe, directory: string): Promise<Record<string, string>> {
  const text = await readOf(directory, pathOf(recipe), missingDockerfile(work, recipe));
  const file = { name: recipe.dockerfilePath, text };
  return declaredArguments(work.run.scope.organizationId, file, work.variables!.variables);
}

/** Returns the message for a missing Dockerfile, with what to do. */
function missingDockerfile({ run, service }: ServiceWork, { rootPath, dockerfilePath }: BuildRecipe): string {
  const source = kindOf({ run, service }).source(service);
  const where = source?.type === 'git' ? `branch ${source.branch} of ${source.url}` : 'the source';
  return `No file "${dockerfilePath}" at ${rootPath} of ${where}: commit one there, or set dockerfile_path and root_path.`;
}
