import { clientAddress } from '#kernel/addresses.ts';
import { HOP_BY_HOP } from '#kernel/hop-by-hop.ts';

/** Fields that belong to one connection (RFC 9110 §7.6.1) or frame a message; each side of the proxy writes its own. */
const OF_CONNECTION = [...HOP_BY_HOP, 'transfer-encoding', 'http2-settings'];

/** Request fields that only the proxy may set, besides `x-forwarded-*`. */
const OF_PROXY = ['forwarded', 'x-real-ip', 'true-client-ip', 'x-client-ip', 'x-cluster-client-ip', 'client-ip'];

const NOT_IN_REQUESTS = new Set([...OF_CONNECTION, ...OF_PROXY, 'host', 'content-length', 'expect']);
const NOT_IN_ANSWERS = new Set(OF_CONNECTION);
/** Fields that would change how a message is framed or routed if they came after it (RFC 9110 §6.5.1). */
const NOT_IN_TRAILERS = new Set([...NOT_IN_REQUESTS, ...NOT_IN_ANSWERS, 'set-cookie', 'authorization', 'content-type']);
/** Fields that `Connection` cannot remove: without them a message would be interpreted differently. */
const NEEDED = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'content-encoding',
  'content-type',
  'set-cookie',
]);

/** Returns a name as workloads may read it: many treat `X_Forwarded_For` as `X-Forwarded-For`. */
const canonical = (name: string): string => name.toLowerCase().replaceAll('_', '-');

const isForwarding = (name: string): boolean => name.startsWith('x-forwarded-') || OF_PROXY.includes(name);

/** Returns the header fields that a `Connection` field limits to this connection. */
function namedByConnection(fields: readonly string[]): Set<string> {
  const named = new Set<string>();
  for (let at = 0; at < fields.length; at += 2)
    if (fields[at]!.toLowerCase() === 'connection')
      for (const part of fields[at + 1]!.split(',')) {
        const name = canonical(part.trim());
        if (!NEEDED.has(name)) named.add(name);
      }
  return named;
}

/** Origin of a request: its host, peer and connection. */
export interface Arrival {
  /** Host as the visitor wrote it, perhaps with a port. */
  host: string;
  /** Address of the visitor or of the proxy in front. */
  peer: string;
  port: number;
  /** True if the peer's information about its client counts. */
  trusted: boolean;
}

/**
 * Returns the fields for the upstream, names and values in turn: first those that the proxy sets about the visitor, then the visitor's own
 * without those of its connection. `given` are raw fields. Host, Content-Length and the framing are left to the caller.
 */
export function requestFields(given: readonly string[], arrival: Arrival): string[] {
  const named = namedByConnection(given);
  const forwarded = new Map<string, string>();
  const rest: string[] = [];
  for (let at = 0; at < given.length; at += 2) {
    const [name, value] = [given[at]!, given[at + 1]!];
    const known = canonical(name);
    if (isForwarding(known)) {
      // Only the spelling with hyphens counts: an underscore must not bypass the proxy in front.
      if (arrival.trusted && known === name.toLowerCase()) {
        const before = forwarded.get(known);
        forwarded.set(known, before === undefined ? value : `${before}, ${value}`);
      }
    } else if (!NOT_IN_REQUESTS.has(known) && !named.has(known) && !name.startsWith(':')) rest.push(name, value);
  }
  const { host, peer, port } = arrival;
  const before = forwarded.get('x-forwarded-for');
  forwarded.set('x-forwarded-for', before ? `${before}, ${clientAddress(peer)}` : clientAddress(peer));
  const defaults = { 'x-forwarded-proto': 'http', 'x-forwarded-host': host, 'x-forwarded-port': String(port) };
  for (const [name, value] of Object.entries(defaults)) if (!forwarded.has(name)) forwarded.set(name, value);
  return [...[...forwarded].flat(), ...rest];
}

/** Returns the fields of an answer without those of the connection to the upstream; `given` are raw fields. */
export function answerFields(given: readonly string[]): string[] {
  const named = namedByConnection(given);
  return without(given, (name) => NOT_IN_ANSWERS.has(name) || named.has(name));
}

/** Returns the trailers that may follow an answer; `given` are raw fields. */
export const trailerFields = (given: readonly string[]): string[] =>
  without(given, (name) => NOT_IN_TRAILERS.has(name) || name.startsWith(':') || name.startsWith('x-forwarded-'));

function without(given: readonly string[], isLeftOut: (name: string) => boolean): string[] {
  const fields: string[] = [];
  for (let at = 0; at < given.length; at += 2)
    if (!isLeftOut(canonical(given[at]!))) fields.push(given[at]!, given[at + 1]!);
  return fields;
}

/** Returns the values of one field in raw fields. */
export function valuesOf(fields: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let at = 0; at < fields.length; at += 2) if (fields[at]!.toLowerCase() === name) values.push(fields[at + 1]!);
  return values;
}

/** Converts raw fields to a map for HTTP/2, in which a repeated field has several values. */
export function fieldMap(fields: readonly string[]): Record<string, string | string[]> {
  const map: Record<string, string | string[]> = Object.create(null);
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at]!.toLowerCase();
    const present = map[name];
    map[name] = present === undefined ? fields[at + 1]! : [present, fields[at + 1]!].flat();
  }
  return map;
}
