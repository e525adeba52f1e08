/**
 * Node's HTTP as CommonJS gets it. Importing `node:http` as an ES module evaluates all of its exports, WebSocket among them, for
 * which Node loads the client that `fetch` is made of: 8 MB in a process that needs none of it (measured with Node 26).
 */
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
