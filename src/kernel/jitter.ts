/** Spreads a time by a tenth, so that what began together does not come together for ever. */
export const jittered = (seconds: number): number => seconds * (0.9 + Math.random() * 0.2);
