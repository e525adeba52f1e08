/** A tenant at its limits: more requests at once than it may have, of the sorts that keep a server busy the longest. */
import { connect, type Socket } from 'node:net';
import { Pool } from 'undici';
import { offer } from './processes.ts';

/** Address and token of an attack, with the project and application that it uses. */
export interface Attack {
  url: string;
  token: string;
  projectId: string;
  applicationId: string;
}

const READS = 150;
const REDEPLOYS = 100;
const WAITS = 50;
const SLOW_BODIES = 100;

let over = false;
let lines: Promise<unknown>[] = [];
const sockets = new Set<Socket>();
const answers: Record<number, number> = {};

/** Asks again and again, whatever is answered; a refusal is what a caller at its limits gets. */
async function ask(pool: Pool, token: string, method: 'GET' | 'POST', path: string): Promise<void> {
  while (!over) {
    const answer = await pool.request({ path, method, headers: { authorization: `Token ${token}` } });
    await answer.body.dump();
    answers[answer.statusCode] = (answers[answer.statusCode] ?? 0) + 1;
  }
}

/** Sends a body a byte at a time, and begins anew when the server has had enough. */
function sendSlowly({ url, token, projectId }: Attack): void {
  if (over) return;
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  sockets.add(socket);
  socket.write(
    `POST /project/${projectId}/environment HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Token ${token}\r\n` +
      'content-type: application/json\r\ncontent-length: 100000\r\n\r\n{',
  );
  const timer = setInterval(() => socket.write(' '), 100);
  socket.resume();
  // A connection that the server cut off is what it does against such clients.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    clearInterval(timer);
    sockets.delete(socket);
    sendSlowly({ url, token, projectId, applicationId: '' });
  });
}

function begin(attack: Attack): void {
  const { url, token, projectId, applicationId } = attack;
  const pool = new Pool(new URL(url).origin, { connections: READS + REDEPLOYS + WAITS, headersTimeout: 120_000 });
  const many = (count: number, method: 'GET' | 'POST', path: string) =>
    Array.from({ length: count }, () => ask(pool, token, method, path));
  lines = [
    ...many(READS, 'GET', `/project/${projectId}/environment/status?page_size=100`),
    ...many(REDEPLOYS, 'POST', `/application/${applicationId}/redeploy`),
    ...many(WAITS, 'POST', `/application/${applicationId}/redeploy?wait=5`),
  ];
  for (let n = 0; n < SLOW_BODIES; n++) sendSlowly(attack);
}

/** Ends the attack and answers how often each status was answered. */
async function end(): Promise<Record<number, number>> {
  over = true;
  for (const socket of sockets) socket.destroy();
  await Promise.all(lines);
  return answers;
}

offer({ begin, end }, async () => undefined);
