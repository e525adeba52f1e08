import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { isLinkOfEngine } from '#test/harness/engine-links.ts';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { createServer } from '#kernel/node-http.ts';
import { addBusybox, addLibraries, addProgram, importImage } from '#test/harness/docker-images.ts';

const run = promisify(execFile);

/** Native package of the program for this machine: what `@anthropic-ai/claude-code` would install. */
const PACKAGE = `@anthropic-ai/claude-code-linux-${process.arch}`;

export interface AgentProgram {
  /** Path of the program; null if it is not available. */
  program: string | null;
  /** Reason why the program is not available. */
  reason: string;
  remove(): void;
}

/** Fetches the agent's program from npm into a folder of its own. */
export async function fetchAgent(): Promise<AgentProgram> {
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-agent-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const program = path.join(folder, 'package/claude');
  try {
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder, PACKAGE], { cwd: folder });
    await run('tar', ['-xzf', path.join(folder, stdout.trim().split('\n').at(-1)!), '-C', folder]);
    const { stdout: version } = await run(program, ['--version']);
    if (!/^\d+\.\d+\.\d+ /.test(version)) throw new Error(`it says ${version}`);
    return { program, reason: '', remove };
  } catch (error) {
    remove();
    const { message } = error as Error;
    return { program: null, reason: `${PACKAGE}: ${message.trim().split('\n').slice(0, 4).join(' ')}`, remove };
  }
}

/**
 * Pushes an image for the agent to a registry on this machine. It holds what the program needs (libraries, a shell, git), but not the
 * program itself, which is large.
 */
export async function pushAgentImage(socketPath: string, registry: string, program: string): Promise<string> {
  const docker = new Docker({ socketPath });
  const repository = `${registry}/acme/agent`;
  await importImage(docker, 'quarterdeck-test-agent:1.0', async (archive) => {
    await addBusybox(archive);
    await addLibraries(archive, program);
    for (const name of ['bash', 'git']) {
      const { stdout } = await run('which', [name]);
      await addProgram(archive, `usr/bin/${name}`, stdout.trim());
    }
  });
  await docker.getImage('quarterdeck-test-agent:1.0').tag({ repo: repository, tag: '1.0' });
  const authconfig = { username: '', password: '', serveraddress: registry };
  const said = await text((await docker.getImage(`${repository}:1.0`).push({ authconfig })) as Readable);
  if (said.includes('"error"')) throw new Error(said);
  await docker.getImage('quarterdeck-test-agent:1.0').remove();
  return `${repository}:1.0`;
}

/** Returns an address of this machine that its containers reach. */
export const machineAddress = (): string =>
  Object.entries(networkInterfaces())
    .flatMap(([name, all]) => (isLinkOfEngine(name) ? [] : all))
    .find((one) => one?.family === 'IPv4' && !one.internal)!.address;

interface AskedModel {
  key: string | undefined;
  model: string;
  /** The last message of the conversation, as JSON. */
  last: string;
  /** All messages of the conversation, as JSON. */
  messages: string;
}

export interface MessagesApi {
  url: string;
  asked: AskedModel[];
  stop(): Promise<void>;
}

/**
 * Starts a server that speaks the Messages API with streaming. It has the agent run one command with its tool `Bash`, then answers with the
 * output.
 */
export async function startMessagesApi(command: string): Promise<MessagesApi> {
  const asked: AskedModel[] = [];
  const server = createServer((request, response) => void answer(request, response, command, asked));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  return {
    url: `http://${machineAddress()}:${(server.address() as AddressInfo).port}`,
    asked,
    stop: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

interface Block {
  type: string;
  content?: unknown;
}

async function answer(request: IncomingMessage, response: ServerResponse, command: string, asked: AskedModel[]) {
  const sent = await text(request);
  if (request.method !== 'POST' || !request.url!.startsWith('/v1/messages?'))
    return void response.writeHead(404, { 'content-type': 'application/json' }).end('{"type":"error"}');
  const body = JSON.parse(sent) as { model: string; stream?: boolean; messages: { content: string | Block[] }[] };
  const last = body.messages.at(-1)!.content;
  const messages = JSON.stringify(body.messages);
  const key = request.headers['x-api-key'] as string | undefined;
  asked.push({ key, model: body.model, last: JSON.stringify(last), messages });
  const result = Array.isArray(last) ? last.find(({ type }) => type === 'tool_result') : undefined;
  const block = result
    ? { type: 'text', text: `It said: ${JSON.stringify(result.content)}` }
    : { type: 'tool_use', id: `toolu_${asked.length}`, name: 'Bash', input: { command, description: 'Looks.' } };
  const message = { id: `msg_${asked.length}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } }; // prettier-ignore
  const reason = result ? 'end_turn' : 'tool_use';
  if (!body.stream) {
    response.setHeader('content-type', 'application/json');
    return void response.end(JSON.stringify({ ...message, content: [block], stop_reason: reason }));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const tell = (type: string, data: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  tell('message_start', { message });
  const isText = 'text' in block;
  tell('content_block_start', { index: 0, content_block: { ...block, ...(isText ? { text: '' } : { input: {} }) } });
  const delta = isText
    ? { type: 'text_delta', text: block.text }
    : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
  tell('content_block_delta', { index: 0, delta });
  tell('content_block_stop', { index: 0 });
  tell('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } });
  tell('message_stop', {});
  response.end();
}
