import { parse } from 'smol-toml';

/** Parses TOML. Throws Error with line and column of what is wrong. */
export const parseToml = (text: string): unknown => parse(text);
