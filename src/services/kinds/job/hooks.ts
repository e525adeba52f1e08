import { AppError } from '#kernel/errors.ts';
import { readFileOf } from '#kernel/parsing/index.ts';
import { outputPathOf, type KindHooks } from '#deployments/index.ts';
import { recordOutputs } from '#services/capabilities/variables/index.ts';

/** Stores the outputs of a job's event as variables of its environment (docs/contributing/engine.md, *Snapshot, resolution, plan*). */
export const jobHooks: KindHooks = {
  record: async (context, service, execution) => {
    const output = execution.failure === null ? execution.outcomes.at(-1)?.end.output : null;
    // A missing file changes nothing; a removed service takes its outputs along.
    if (typeof output !== 'string' || execution.action === 'DELETE' || execution.action === 'UNINSTALL') return [];
    const path = outputPathOf(context.settings.builtInVariablePrefix);
    const { organizationId, environmentId, deploymentId } = execution;
    const place = { organizationId, environmentId, deploymentId, serviceId: service.serviceId };
    try {
      const outputs = await readFileOf(organizationId, 'job-outputs', { name: path, text: output });
      return await recordOutputs(context, place, outputs);
    } catch (error) {
      // Errors of the rules for variables do not name the file.
      if (error instanceof AppError && !error.message.startsWith(path))
        throw new Error(`${path}: ${error.message}`, { cause: error });
      throw error;
    }
  },
};
