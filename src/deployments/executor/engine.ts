import type { ClientConfig } from 'pg';
import type { Context, Platform } from '#platform/context.ts';
import type { DeployableKind, ExpandedVariables } from '#deployments/model/kind.ts';
import type { Commit, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { Mask } from '#deployments/logs/writer.ts';
import type { Tracer } from '#platform/telemetry/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';

export interface SourceRequest {
  organizationId: string;
  url: string;
  branch: string;
  gitTokenId: string | null;
  signal: AbortSignal;
}

/** What the engine is given by app/: it knows neither HTTP nor services nor a single runtime. */
export interface EngineParts {
  platform: Platform;
  /** A direct connection, not through a pooler: its advisory lock shows that the worker lives. */
  directConfig: ClientConfig;
  nodeId: string;
  installation: { id: string; epoch: number };
  kinds: Record<string, DeployableKind>;
  /** The runtime of a cluster; throws an error for people when it cannot be used. */
  runtimeOf(cluster: { id: string; runtime: string }): Promise<Runtime>;
  sources: {
    /** The commit of a branch's head, or the named one. */
    resolve(request: SourceRequest & { commitId: string | null }): Promise<Commit>;
    /** Checks the commit out into the directory. */
    checkout(request: SourceRequest & { commit: string; directory: string; log(line: string): void }): Promise<void>;
  };
  /** Expands a service's variables at the start of its stage. */
  expand(
    context: Context,
    organizationId: string,
    service: ServiceSnapshot,
  ): Promise<ExpandedVariables & { warnings: string[] }>;
  makeMask(secrets: string[]): Mask;
  /** Gets a span per deployment and step. */
  tracer: Tracer;
  /** Folder for checkouts. */
  workDirectory: string;
  /** Ends the processes of this machine that work in a folder or below. */
  endProcessesIn(folder: string): Promise<void>;
  slots: { deployments: number; builds: number; perOrganization: number };
}

/** Generation of what a deployment makes outside the database (engine.md, *The queue*): epoch first, so that a restored database is ahead. */
export const generationOf = (epoch: number, number: number): number => epoch * 2 ** 32 + number;
