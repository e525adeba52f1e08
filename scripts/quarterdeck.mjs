#!/usr/bin/env node
import path from 'node:path';
import { bundleProgram } from './bundle.mjs';
import { prepare, ROOT } from './prepare.mjs';
import { runNode } from './run-node.mjs';

// Set here and not only by the program itself: so nothing of it has to be stripped of its types any more, which saves 10 MB.
const env = {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? path.join(ROOT, 'node_modules', '.cache', 'compile'),
};
prepare();
process.exitCode = await runNode([await bundleProgram(), ...process.argv.slice(2)], { cwd: process.cwd(), env });
