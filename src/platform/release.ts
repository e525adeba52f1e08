import { readFileSync } from 'node:fs';
import path from 'node:path';

const PACKAGE = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string;
  engines: { node: string };
};

/** Version of this program, as its package says. */
export const RELEASE = PACKAGE.version;

/** Least major version of Node.js that this program runs on, as its package says. */
export const LEAST_NODE = Number(/\d+/.exec(PACKAGE.engines.node)![0]);
