/**
 * Program `node listener.ts <port>`, started in a sandbox's network: passes a socket that listens on its loopback to its parent process.
 */
import { createServer } from 'node:net';

const server = createServer();
server.listen(Number(process.argv[2]), '127.0.0.1', () => {
  process.send!('listening', server, undefined, (error) => process.exit(error ? 1 : 0));
});
