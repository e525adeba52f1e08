import { writeFileSync } from 'node:fs';
import { runChecked, runCommand } from '#runtimes/tools/command.ts';

/** Prefix of the bridges of all installations. The rules use it to separate environments from each other. */
export const BRIDGE_PREFIX = 'qdh';

/** Rules by which an environment reaches the world but no other environment. */
export interface Firewall {
  /** True if addresses outside of this machine can be reached. */
  readonly outside: boolean;
  open(bridge: string, subnet: string): Promise<void>;
  close(bridge: string, subnet: string): Promise<void>;
}

const NONE: Firewall = { outside: false, open: async () => undefined, close: async () => undefined };

/** Returns the rules of one environment as argument lists without `-A`. They must stand at the top, in this order. */
export function rulesOf(bridge: string, subnet: string): { table: string; chain: string; rule: string[] }[] {
  const established = ['-m', 'conntrack', '--ctstate', 'ESTABLISHED,RELATED'];
  const forward = [
    ['-i', bridge, '-o', bridge, '-j', 'ACCEPT'],
    ['-i', bridge, '-o', `${BRIDGE_PREFIX}+`, '-j', 'DROP'],
    ['-i', bridge, '-j', 'ACCEPT'],
    ['-o', bridge, ...established, '-j', 'ACCEPT'],
  ];
  return [
    ...forward.map((rule) => ({ table: 'filter', chain: 'FORWARD', rule })),
    { table: 'nat', chain: 'POSTROUTING', rule: ['-s', subnet, '!', '-o', bridge, '-j', 'MASQUERADE'] },
  ];
}

/** Returns a firewall by iptables if it works; otherwise the instances reach only each other and this machine. */
export async function findFirewall(iptables: string | null): Promise<Firewall> {
  if (!iptables) return NONE;
  const run = (args: string[]) => runCommand(iptables, ['--wait', '10', ...args]);
  if ((await run(['--table', 'nat', '--list', 'POSTROUTING', '--numeric'])).exitCode !== 0) return NONE;
  const there = async (table: string, chain: string, rule: string[]) =>
    (await run(['--table', table, '--check', chain, ...rule])).exitCode === 0;
  return {
    outside: true,
    async open(bridge, subnet) {
      writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
      // Each rule is inserted at the top, so the last one goes first.
      for (const { table, chain, rule } of rulesOf(bridge, subnet).toReversed())
        if (!(await there(table, chain, rule)))
          await runChecked(iptables, ['--wait', '10', '--table', table, '--insert', chain, ...rule]);
    },
    async close(bridge, subnet) {
      for (const { table, chain, rule } of rulesOf(bridge, subnet))
        while (await there(table, chain, rule))
          await runChecked(iptables, ['--wait', '10', '--table', table, '--delete', chain, ...rule]);
    },
  };
}
