#!/usr/bin/env node
import path from 'node:path';
import { ROOT } from './prepare.mjs';
import { runNode } from './run-node.mjs';

process.exitCode = await runNode([path.join(ROOT, 'src', 'main.ts'), ...process.argv.slice(2)], { cwd: process.cwd() });
