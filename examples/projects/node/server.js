import { createServer } from 'node:http';

const server = createServer((request, response) => response.end('Hello from Node.js\n')).listen(process.env.PORT);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
