import type { ServiceFacts } from '#deployments/executor/facts.ts';
import { again } from '#deployments/executor/fenced-write.ts';
import { identityIn, type Run } from '#deployments/executor/run-context.ts';
import type { Resolution, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import { RuntimeError, type Runtime } from '#runtimes/runtime.ts';

/** Inputs of a plan that name images which were built earlier. */
interface Known {
  resolution: Resolution;
  facts: Map<string, ServiceFacts>;
}

/**
 * Leaves out built images that their registry does not have any more, so that they are built again: registries expire images by rules of
 * their own. Where built images lie on the machine, housekeeping looks after them instead.
 */
export async function withoutLostImages(run: Run, known: Known, runtimeOf: () => Promise<Runtime>): Promise<Known> {
  const { action, services } = run.snapshot;
  if (action !== 'DEPLOY' && action !== 'RUN') return known;
  const named = services.flatMap((service) => builtImagesOf(run, known, service));
  if (named.length === 0) return known;
  // It is asked for again once the deployment has started, and its failure is told then.
  const runtime = await runtimeOf().catch(() => null);
  if (!runtime?.registryOf) return known;
  const looks = named.map(async ({ service, image }) => ((await isLost(run, runtime, service, image)) ? [image] : []));
  return without(known, (await Promise.all(looks)).flat());
}

function without({ resolution, facts }: Known, lost: string[]): Known {
  const isGone = (image: string | null | undefined) => image !== null && image !== undefined && lost.includes(image);
  const services = Object.entries(resolution.services).map(([id, { image, ...resolved }]) => [
    id,
    image === undefined || isGone(image) ? resolved : { ...resolved, image },
  ]);
  const kept = [...facts].map(([id, { release, ...others }]): [string, ServiceFacts] => [
    id,
    { ...others, release: release && isGone(release.image) ? { ...release, image: null } : release },
  ]);
  return { resolution: { ...resolution, services: Object.fromEntries(services) }, facts: new Map(kept) };
}

/** Returns the images of a service that were built: of its last release, and of that which a rollback goes back to. */
function builtImagesOf(
  run: Run,
  { resolution, facts }: Known,
  service: ServiceSnapshot,
): { service: ServiceSnapshot; image: string }[] {
  if (!run.parts.kinds[service.kind]?.build) return [];
  const of = run.snapshot.rollbackTo ? resolution.services[service.serviceId] : facts.get(service.serviceId)?.release;
  return of?.image && of.buildKey ? [{ service, image: of.image }] : [];
}

/** Returns whether an image is gone. While its registry cannot be asked it counts as there: the nodes may still have it. */
async function isLost(run: Run, runtime: Runtime, service: ServiceSnapshot, image: string): Promise<boolean> {
  const { serviceId } = service;
  const say = (text: string) => run.log.write({ serviceId, step: 'DEPLOYMENT', text });
  try {
    if (await again(() => runtime.hasImage!(identityIn(run, serviceId), image))) return false;
    say(`The registry does not have ${image} any more: it is built again.`);
    return true;
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    say(`It is not known whether ${image} is still there: ${error.message}`);
    return false;
  }
}
