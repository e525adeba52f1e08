import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Received call of a webhook. */
interface Call {
  id: string;
  event: string;
  deployment: string;
  service: string;
}

/** Server that accepts and records webhook calls. */
export interface Receiver {
  url: string;
  calls: Call[];
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { event_type, payload } = JSON.parse(body);
      calls.push({
        id: String(request.headers['webhook-id']),
        event: event_type,
        deployment: payload.deployment_request_id,
        service: payload.service_id,
      });
      response.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    calls,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
