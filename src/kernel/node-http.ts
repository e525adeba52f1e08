/**
 * Node's HTTP as CommonJS gets it. Importing `node:http` as an ES module evaluates all of its exports, WebSocket among them, for
 * which Node loads the client that `fetch` is made of: 5 to 8 MB in a process that needs none of it (measured with Node 26).
 * Types are imported from `node:http` itself.
 */
export const { createServer, request, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
