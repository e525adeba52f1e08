import { createServer } from 'node:http';

const port = Number(process.env.PORT ?? 3000);
const greeting = process.env.GREETING ?? 'Hello from Quarterdeck';

createServer((request, response) => {
  console.log(`${request.method} ${request.url}`);
  response.end(`${greeting}\n`);
}).listen(port, () => console.log(`listening on ${port}`));
