/** Largest length of an address in characters (RFC 5321, 4.5.3.1.3, without the angle brackets). */
const MAX_LENGTH = 254;

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const ATOM = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+";
const ADDRESS = new RegExp(`^${ATOM}(?:\\.${ATOM})*@${LABEL}(?:\\.${LABEL})*$`, 'i');

/**
 * Returns whether a text is one address without a name, comment or quotes, such as `ops@example.com`. Such an address means the same to
 * every program that reads it, and ends neither a header nor a command. International domains are written in their ASCII form.
 */
export const isMailAddress = (text: string): boolean =>
  text.length <= MAX_LENGTH && text.lastIndexOf('@') <= 64 && ADDRESS.test(text);

/** Returns the domain of an address. */
export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1);
