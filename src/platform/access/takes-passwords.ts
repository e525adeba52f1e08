import type { Settings } from '#platform/settings/index.ts';

/** Returns whether people sign in with passwords here: where it is not set, an identity provider stands in for them. */
export const takesPasswords = ({ passwords, oidcIssuer }: Pick<Settings, 'passwords' | 'oidcIssuer'>): boolean =>
  passwords === 'auto' ? oidcIssuer === '' : passwords === 'true';
