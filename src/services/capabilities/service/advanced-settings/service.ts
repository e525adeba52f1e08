import ipaddr from 'ipaddr.js';
import { AppError, invalidField, type FieldError } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import * as queries from '#services/capabilities/service/advanced-settings/queries.ts';
import type { NetworkInput } from '#services/capabilities/service/advanced-settings/schema.ts';
import {
  ADVANCED_SETTINGS,
  advancedSettingsOf,
  differing,
  settingsOf,
} from '#services/capabilities/service/advanced-settings/settings.ts';
import type { Kind } from '#services/kind.ts';
import { placeOfService, refuseDeleting, updatedBy } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

const STICKY = 'network.ingress.enable_sticky_session';

/** Returns the default advanced settings of a kind. */
export const defaultSettings = (kind: Kind) => advancedSettingsOf({ kind: kind.kind, advanced_settings: {} });

/** Replaces the advanced settings. Settings that are absent or null get their default. */
export async function editAdvancedSettings(context: Context, service: ServiceTarget, input: Record<string, unknown>) {
  refuseDeleting(service);
  refuseUnknown(service.kind, input);
  checkTexts(input);
  const own = differing(service.kind, input);
  const after = advancedSettingsOf({ kind: service.kind, advanced_settings: own });
  await write(context, service, own, {
    sub: 'ADVANCED_SETTINGS',
    before: advancedSettingsOf(service),
    after,
  });
  return after;
}

/** Returns the network settings, which are an advanced setting under another name. */
export const toNetworkView = (service: ServiceTarget) => ({
  sticky_session: Boolean(advancedSettingsOf(service)[STICKY]),
});

/** Changes the network settings. Absent settings get their default. */
export async function editNetwork(context: Context, service: ServiceTarget, input: NetworkInput) {
  refuseDeleting(service);
  const present = advancedSettingsOf(service);
  const own = differing(service.kind, { ...present, [STICKY]: input.sticky_session ?? false });
  const after = { sticky_session: input.sticky_session ?? false };
  await write(context, service, own, { sub: 'CONFIG', before: toNetworkView(service), after });
  return after;
}

async function write(
  context: Context,
  service: ServiceTarget,
  own: Record<string, unknown>,
  event: { sub: 'ADVANCED_SETTINGS' | 'CONFIG'; before: unknown; after: unknown },
): Promise<void> {
  await queries.updateAdvancedSettings(context.db, service, service.id, {
    advanced_settings: own,
    ...updatedBy(context),
  });
  await audit(context, {
    organizationId: service.organizationId,
    type: 'UPDATE',
    ...placeOfService(service, event.sub),
    before: event.before,
    after: event.after,
  });
}

/** Refuses unknown keys, because a misspelt key would get its default without an error. */
function refuseUnknown(kind: string, input: Record<string, unknown>): void {
  const known = new Set(settingsOf(kind).map(([key]) => key));
  const errors: FieldError[] = Object.keys(input)
    .filter((key) => !known.has(key))
    .slice(0, 20)
    .map((key) => ({
      field: key,
      message: key in ADVANCED_SETTINGS ? `is no setting of kind ${kind.toLowerCase()}` : 'is not an advanced setting',
    }));
  if (errors.length === 0) return;
  const message = errors.map((error) => `${error.field}: ${error.message}`).join('; ');
  throw new AppError('bad_request', message, { errors });
}

/** Checks the text settings whose format the schema cannot express. */
function checkTexts(input: Record<string, unknown>): void {
  for (const key of ['network.ingress.whitelist_source_range', 'network.ingress.denylist_source_range'])
    for (const network of listOf(input[key]))
      if (!ipaddr.isValid(network) && !ipaddr.isValidCIDR(network))
        throw invalidField(key, `${network} must be an IP address or network, such as 10.0.0.0/8`);
  const headers = input['network.ingress.extra_headers'];
  if (typeof headers === 'string' && headers !== '' && !isTextObject(headers))
    throw invalidField(
      'network.ingress.extra_headers',
      'must be a JSON object of texts, such as {"X-Frame-Options": "DENY"}',
    );
  for (const code of listOf(input['network.gateway_api.retry.http_status_codes']))
    if (!/^[1-5]\d\d$/.test(code))
      throw invalidField('network.gateway_api.retry.http_status_codes', `${code} is not an HTTP status`);
  const variable = input['network.ingress.basic_auth_env_var'];
  if (typeof variable === 'string' && variable !== '' && !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(variable))
    throw invalidField('network.ingress.basic_auth_env_var', 'must be the key of a variable');
}

const listOf = (value: unknown): string[] =>
  typeof value === 'string' && value.trim() !== '' ? value.split(',').map((part) => part.trim()) : [];

function isTextObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.values(value).every((one) => typeof one === 'string')
    );
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
