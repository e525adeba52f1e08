/** Length of the part of an API token that tells its id: `qd_`, 32 digits, `_`. */
const PREFIX = 36;

/** Returns the secret of an API token, whole: it may have underscores of its own, so that splitting by them leaves a part of any length. */
export const secretOf = (token: string): string => token.trim().slice(PREFIX);
