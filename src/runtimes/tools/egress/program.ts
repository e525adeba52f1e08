import { readFileSync } from 'node:fs';
import { createEgressProxy } from '#runtimes/tools/egress/proxy.ts';
import { greetingOf } from '#runtimes/tools/egress/rules.ts';
import type { Egress } from '#runtimes/runtime.ts';

/** Configuration of the program: a file of JSON that its argument names. */
export interface EgressProgram extends Egress {
  address: string;
  port: number;
}

const egress = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as EgressProgram;
const log = (line: string) => void process.stdout.write(`${line}\n`);
const server = createEgressProxy({ ...egress, log });
server.listen(egress.port, egress.address, () => log(greetingOf(egress)));
process.once('SIGTERM', () => process.exit(0));
