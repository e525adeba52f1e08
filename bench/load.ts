/** The load: keep-alive connections that each send a request as soon as the one before is answered. */
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { median, offer } from './processes.ts';

/** `$new` in the body is another text in each request. */
export interface Load {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  connections: number;
  warmUpMs: number;
  measuredMs: number;
}

/** Answered requests per second. Throws when one is not answered with success. */
async function measure({ url, method, headers, body, connections, warmUpMs, measuredMs }: Load): Promise<number> {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections });
  let done = 0;
  let over = false;
  const line = async () => {
    while (!over) {
      const sent = body?.replaceAll('$new', randomUUID()) ?? null;
      const answer = await pool.request({ path: pathname + search, method, headers, body: sent });
      const text = await answer.body.text();
      if (answer.statusCode >= 300) throw new Error(`${url} answered ${answer.statusCode}: ${text}`);
      done++;
    }
  };
  const lines = Promise.all(Array.from({ length: connections }, line));
  const measured = (async () => {
    await new Promise((resolve) => setTimeout(resolve, warmUpMs));
    const [before, started] = [done, performance.now()];
    await new Promise((resolve) => setTimeout(resolve, measuredMs));
    const rate = ((done - before) * 1000) / (performance.now() - started);
    over = true;
    return rate;
  })();
  await Promise.race([measured, lines]);
  const rate = await measured;
  await lines;
  await pool.close();
  return rate;
}

/** A GET of one caller who asks again and again. */
export interface Latency {
  url: string;
  headers: Record<string, string>;
  measuredMs: number;
}

/** Median milliseconds until a GET is answered, one after the other. Throws when one is not answered with success. */
async function latency({ url, headers, measuredMs }: Latency): Promise<number> {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections: 1 });
  const times: number[] = [];
  for (const end = performance.now() + measuredMs; performance.now() < end;) {
    const asked = performance.now();
    const answer = await pool.request({ path: pathname + search, method: 'GET', headers });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${url} answered ${answer.statusCode}: ${text}`);
    times.push(performance.now() - asked);
  }
  await pool.close();
  return median(times);
}

offer({ measure, latency }, async () => undefined);
