#!/usr/bin/env node
import path from 'node:path';
import { ROOT } from './prepare.mjs';
import { runNode } from './run-node.mjs';

// Set here and not only by the program itself: so nothing of it has to be stripped of its types any more, which saves 10 MB.
const env = {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? path.join(ROOT, 'node_modules', '.cache', 'compile'),
};
process.exitCode = await runNode([path.join(ROOT, 'src', 'main.ts'), ...process.argv.slice(2)], {
  cwd: process.cwd(),
  env,
});
