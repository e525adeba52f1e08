import type { Finding } from '#kernel/finding.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { runCommand } from '#runtimes/tools/command.ts';
import { findPrograms } from '#runtimes/tools/terraform/programs.ts';

interface Tool {
  name: string;
  args: string[];
  /** Effect of its absence, and where to get it. */
  without: string;
  /** True if nothing runs without the tool. */
  needed?: boolean;
}

const TOOLS: Tool[] = [
  {
    name: 'git',
    args: ['--version'],
    needed: true,
    without: 'Nothing can be deployed from a repository: install git (`apt-get install git`, `brew install git`).',
  },
  {
    name: 'claude',
    args: ['--version'],
    without:
      'Agentic workflows do not run on host clusters: install it for every account (`npm install --global @anthropic-ai/claude-code`).',
  },
  {
    name: 'helm',
    args: ['version', '--short'],
    without:
      'Charts cannot be looked at by hand: install it from https://helm.sh/docs/intro/install. Helm services take a Kubernetes cluster, with or without it.',
  },
  {
    name: 'kubectl',
    args: ['version', '--client'],
    without: 'Kubernetes clusters cannot be looked at by hand: install it from https://kubernetes.io/docs/tasks/tools.',
  },
];

/** Inspects the programs for Terraform services on host clusters; images bring their own on docker clusters. */
export async function inspectTerraform({ terraformPrograms }: { terraformPrograms: string }): Promise<Finding[]> {
  const found = await findPrograms(terraformPrograms);
  return PROGRAMS.map(({ engine, name, page }) => {
    const own = found.filter((one) => one.engine === engine);
    if (own.length > 0)
      return {
        name,
        state: 'ok',
        found: own.map(({ version, path: file }) => `${version} (${file})`).join(', '),
        advice: [],
      };
    const where = 'put it on the PATH, or into the folder of versions that QUARTERDECK_TERRAFORM_PROGRAMS names.';
    return {
      name,
      state: 'missing',
      found: 'not found',
      advice: [`Its services do not deploy on host clusters: get it from ${page} and ${where}`],
    };
  });
}

const PROGRAMS = [
  { engine: 'TERRAFORM', name: 'terraform', page: 'https://developer.hashicorp.com/terraform/install' },
  { engine: 'OPEN_TOFU', name: 'tofu', page: 'https://opentofu.org/docs/intro/install' },
] as const;

/** Inspects the programs that deployments of services use. */
export function inspectTools(searchPath: string | undefined): Promise<Finding[]> {
  return Promise.all(TOOLS.map((tool) => inspectTool(tool, searchPath)));
}

async function inspectTool(tool: Tool, searchPath: string | undefined): Promise<Finding> {
  const env: Record<string, string> = searchPath ? { PATH: searchPath } : {};
  try {
    const { exitCode, stdout } = await runCommand(tool.name, tool.args, { env, timeoutSeconds: 10 });
    if (exitCode === 0) return { name: tool.name, state: 'ok', found: stdout.trim().split('\n')[0]!, advice: [] };
    return { name: tool.name, state: 'missing', found: `ends with status ${exitCode}`, advice: [tool.without] };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return { name: tool.name, state: tool.needed ? 'broken' : 'missing', found: 'not found', advice: [tool.without] };
  }
}
