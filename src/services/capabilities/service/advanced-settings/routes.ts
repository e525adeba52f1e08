import { defineRoute, type Route } from '#platform/http/route.ts';
import {
  advancedSettingsRequest,
  advancedSettingsSchema,
  Network,
  NetworkRequest,
} from '#services/capabilities/service/advanced-settings/schema.ts';
import {
  defaultSettings,
  editAdvancedSettings,
  editNetwork,
  toNetworkView,
} from '#services/capabilities/service/advanced-settings/service.ts';
import { advancedSettingsOf } from '#services/capabilities/service/advanced-settings/settings.ts';
import { holderOf, type Kind } from '#services/kind.ts';

/** Advanced settings of a kind of service, and their defaults. */
export function advancedSettingsRoutes(kind: Kind): Route[] {
  if (!kind.capabilities?.advancedSettings) return [];
  const holder = holderOf(kind);
  const { target } = holder;
  const tag = `${holder.tag} Configuration`;
  const path = `/${holder.path}/{${holder.param}}/advancedSettings`;
  const schema = advancedSettingsSchema(kind);
  return [
    defineRoute({
      id: `getDefault${holder.name}AdvancedSettings`,
      method: 'GET',
      path: `/default${holder.name}AdvancedSettings`,
      tag: kind.listTag,
      summary: 'Get the defaults of the advanced settings',
      description: `Answers the value that each setting has while a service of kind ${holder.path} does not set it.`,
      action: 'authenticated',
      answer: { status: 200, body: schema },
      readsOnlyTarget: true,
      handler: () => defaultSettings(kind),
    }),
    defineRoute({
      id: `get${holder.name}AdvancedSettings`,
      method: 'GET',
      path,
      tag,
      summary: 'Get the advanced settings of a service',
      description: 'Answers every setting with the value of this service, else its default.',
      target,
      action: 'service.read',
      answer: { status: 200, body: schema },
      readsOnlyTarget: true,
      handler: (call) => advancedSettingsOf(call.target),
    }),
    defineRoute({
      id: `edit${holder.name}AdvancedSettings`,
      method: 'PUT',
      path,
      tag,
      summary: 'Replace the advanced settings of a service',
      description: 'What is absent or null falls back to its default.',
      target,
      action: 'service.edit',
      body: advancedSettingsRequest(kind),
      answer: { status: 200, body: schema },
      handler: (call) => editAdvancedSettings(call, call.target, call.body as Record<string, unknown>),
    }),
  ];
}

/** Network settings of a kind of service. */
export function networkRoutes(kind: Kind): Route[] {
  if (!kind.capabilities?.network) return [];
  const holder = holderOf(kind);
  const { target } = holder;
  const tag = `${holder.tag} Configuration`;
  const path = `/${holder.path}/{${holder.param}}/network`;
  return [
    defineRoute({
      id: `get${holder.name}Network`,
      method: 'GET',
      path,
      tag,
      summary: 'Get the network settings of a service',
      description: 'Answers whether the requests of one visitor stay with one instance.',
      target,
      action: 'service.read',
      answer: { status: 200, body: Network },
      readsOnlyTarget: true,
      handler: (call) => toNetworkView(call.target),
    }),
    defineRoute({
      id: `edit${holder.name}Network`,
      method: 'PUT',
      path,
      tag,
      summary: 'Edit the network settings of a service',
      description: 'The change takes effect with the next deployment of the service.',
      target,
      action: 'service.edit',
      body: NetworkRequest,
      answer: { status: 200, body: Network },
      handler: (call) => editNetwork(call, call.target, call.body),
    }),
  ];
}
