import { createServer } from 'node:http';
import { greet } from '@shop/greeting';

const server = createServer((request, response) => response.end(`${greet('a workspace')}\n`)).listen(process.env.PORT);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
