export { SocketServer } from '#platform/sockets/server.ts';
export { defineSocket, IDS, type Socket, type SocketCall, type SocketRun } from '#platform/sockets/socket.ts';
export { SharedLooks } from '#platform/sockets/shared-look.ts';
export { FRAME_BYTES, Peer, SocketEnd } from '#platform/sockets/peer.ts';
