export { SocketServer } from '#platform/sockets/server.ts';
export { defineSocket, type Socket, type SocketCall } from '#platform/sockets/socket.ts';
export { SharedLooks } from '#platform/sockets/shared-look.ts';
export { Peer, SocketEnd } from '#platform/sockets/peer.ts';
