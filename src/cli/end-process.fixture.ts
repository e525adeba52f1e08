import { createServer } from 'node:net';
import { endProcess } from '#cli/end-process.ts';

// Holds the process, as what a failed stop leaves behind does.
createServer().listen(0, '127.0.0.1');
console.log('The command has ended.');
endProcess(3);
