/** Starts a shim in the given folder and stays, so that a test can kill it. */
import { startShim } from '#runtimes/tools/shim/index.ts';

await startShim({ directory: process.argv[2]!, command: 'sleep', args: ['1000'], env: { PATH: '/usr/bin:/bin' } });
console.log('started');
setInterval(() => undefined, 1000);
