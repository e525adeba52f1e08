import { randomInt } from 'node:crypto';
import { badRequest, conflict, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { portRefusal } from '#kernel/port-range.ts';
import { publishedRange } from '#platform/settings/port-range.ts';
import { SETTINGS } from '#platform/settings/schema.ts';
import type { PortSpec } from '#services/ports/ports.ts';
import * as queries from '#services/ports/published-port-queries.ts';
import type { PortHolder, PublishedPort } from '#services/ports/published-port-queries.ts';

type Parts = Pick<Context, 'db' | 'settings'>;

/** Tells whether a port is published on the machine itself instead of going through the proxy. */
export const isPublished = ({ publicly_accessible, protocol }: PortSpec): boolean =>
  publicly_accessible && (protocol === 'TCP' || protocol === 'UDP');

/**
 * Claims a port of the machine for every published port: its external port, else a free one. The claims hold on the whole machine until the
 * service gives them up. Throws 400 for ports that the operator reserves, 409 for those of other services.
 */
export async function publishPorts(context: Context, holder: PortHolder, ports: PortSpec[]): Promise<PortSpec[]> {
  const published: PortSpec[] = [];
  for (const [index, port] of ports.entries()) {
    if (!isPublished(port)) {
      published.push(port);
      continue;
    }
    const protocol = port.protocol as PublishedPort['protocol'];
    const external = port.external_port;
    if (external === undefined) {
      published.push({ ...port, external_port: await claimFree(context, holder, protocol) });
      continue;
    }
    const field = `ports[${index}].external_port`;
    const refusal = portRefusal(publishedRange(context.settings), external);
    if (refusal) throw invalidField(field, `${refusal}; without external_port a free one is chosen`);
    if (
      published.some((other) => isPublished(other) && other.protocol === protocol && other.external_port === external)
    )
      throw invalidField(field, `${external}/${protocol} is used twice`);
    if (!(await claim(context, holder, { protocol, port: external })))
      throw conflict(
        `${field}: ${external}/${protocol} is taken by another service on this machine: choose another port, or leave external_port out to get a free one.`,
      );
    published.push(port);
  }
  return published;
}

/** Claims a random free port of the machine. Throws 409 if there is none. */
export async function claimFree(
  context: Context,
  holder: PortHolder,
  protocol: PublishedPort['protocol'],
): Promise<number> {
  const { from, to, reserved } = publishedRange(context.settings);
  const taken = await queries.listTaken(context.db, holder, protocol);
  const free = Array.from({ length: to - from + 1 }, (_, index) => from + index).filter(
    (port) => !taken.has(port) && !reserved.includes(port),
  );
  while (free.length > 0) {
    const [port] = free.splice(randomInt(free.length), 1) as [number];
    if (await claim(context, holder, { protocol, port })) return port;
  }
  throw conflict(
    `All ports from ${from} to ${to} of this machine are taken: make fewer ports public, or ask the operator to widen ${SETTINGS.publishedPorts.name}.`,
  );
}

/** Claims a port for the service; false if another service has it. Throws 409 if the organization has reached its limit of ports. */
async function claim({ db, settings }: Parts, holder: PortHolder, port: PublishedPort): Promise<boolean> {
  const isOwn = async () =>
    (await queries.listClaimed(db, holder)).some((one) => one.protocol === port.protocol && one.port === port.port);
  if (await isOwn()) return true;
  if ((await queries.countOfOrganization(db, holder)) >= settings.organizationPorts)
    throw conflict(
      `The organization has ${settings.organizationPorts} published ports, as many as it may (${SETTINGS.organizationPorts.name}): make fewer ports public.`,
    );
  await queries.claimPort(db, holder, port);
  return isOwn();
}

/**
 * Throws an error for people if a deployment would publish a port of another service. Settings may have changed since the configuration was
 * saved, and a rollback restores old ports.
 */
export async function checkPublished(parts: Parts, holder: PortHolder, ports: PublishedPort[]): Promise<void> {
  const range = publishedRange(parts.settings);
  for (const port of ports) {
    const refusal = portRefusal(range, port.port);
    if (refusal) throw badRequest(`The service cannot be published: ${refusal}.`);
    if (!(await claim(parts, holder, port)))
      throw badRequest(
        `The service cannot be published: ${port.port}/${port.protocol} is taken by another service on this machine. Give it another external_port.`,
      );
  }
}
