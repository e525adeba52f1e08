import { withBase } from '#cli/base.ts';
import { chooseOrganization } from '#cli/organization.ts';
import { print, printAside } from '#cli/print.ts';
import { printTable } from '#cli/table.ts';
import { AppError } from '#kernel/errors.ts';
import { systemContext, type Context } from '#platform/context.ts';
import { UUID_PATTERN } from '#platform/http/schema.ts';
import type { Settings } from '#platform/settings/index.ts';
import { createApiToken, listApiTokens, revokeApiToken } from '#resources/api-token/index.ts';

export interface TokenOptions {
  name: string;
  scope: string;
  description?: string;
  /** ISO 8601. */
  expires?: string;
  /** Ids of the project and the environment that the token is limited to. */
  project?: string;
  environment?: string;
}

/** Creates a token and prints it on standard output. It cannot be shown again. Its description goes to standard error. */
export async function createTokenCommand(settings: Settings, organization: string | undefined, options: TokenOptions) {
  const made = await inOrganization(settings, organization, (context, id) =>
    createApiToken(context, id, {
      name: options.name,
      scope: options.scope,
      description: options.description,
      expires_at: options.expires ? readTime(options.expires) : null,
      project_id: options.project ? readId('--project', options.project) : null,
      environment_id: options.environment ? readId('--environment', options.environment) : null,
    }),
  );
  printAside(`Token ${made.name} (${made.id}, ${made.scope}, ${endOf(made.expires_at)}), shown only now:`);
  print(made.token);
}

/** Prints the tokens as a table, without secrets. */
export async function listTokensCommand(settings: Settings, organization: string | undefined): Promise<void> {
  const tokens = await inOrganization(settings, organization, (context, id) => listApiTokens(context, id));
  const rows = tokens.map((token) => [
    token.id,
    token.name,
    token.scope ?? token.role_name,
    endOf(token.expires_at),
    token.creator_name,
  ]);
  printTable([['ID', 'NAME', 'SCOPE', 'EXPIRES', 'CREATED BY'], ...rows]);
}

/** Revokes a token by its id or its name. */
export async function revokeTokenCommand(settings: Settings, organization: string | undefined, token: string) {
  await inOrganization(settings, organization, (context, id) => revokeApiToken(context, id, token));
  print(`Revoked ${token}.`);
}

/** Runs the work in the organization with that id or name. Without one, the installation must have exactly one organization. */
async function inOrganization<T>(
  settings: Settings,
  wanted: string | undefined,
  work: (context: Context, organizationId: string) => Promise<T>,
): Promise<T> {
  return withBase(settings, async (base) => {
    const id = await chooseOrganization(base, wanted);
    try {
      return await work(systemContext(base.platform, 'quarterdeck token'), id);
    } catch (error) {
      if (error instanceof AppError) throw new Error(explain(error), { cause: error });
      throw error;
    }
  });
}

const explain = (error: AppError): string =>
  [error.message, ...(error.errors ?? []).map(({ field, message }) => `  ${field}: ${message}`)].join('\n');

const endOf = (expires: string | null): string => (expires ? `until ${expires}` : 'without end');

function readId(option: string, text: string): string {
  if (!new RegExp(UUID_PATTERN).test(text)) throw new Error(`${option} ${text}: must be an id, as the API answers it.`);
  return text;
}

function readTime(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new Error(`--expires ${text}: must be a date such as 2030-01-31.`);
  return time.toISOString();
}
