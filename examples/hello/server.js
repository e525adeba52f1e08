import { createServer } from 'node:http';

const port = Number(process.env.PORT ?? 3000);
const greeting = process.env.GREETING ?? 'Hello from Quarterdeck';

const server = createServer((request, response) => {
  console.log(`${request.method} ${request.url}`);
  response.end(`${greeting}\n`);
}).listen(port, () => console.log(`listening on ${port}`));

// Process 1 of a container has no default for signals: without this, ending it takes the whole grace period.
process.on('SIGTERM', () => server.close(() => process.exit(0)));
