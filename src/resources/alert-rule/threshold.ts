/** Comparisons with the threshold of a condition. */
export const OPERATORS = ['NONE', 'ABOVE', 'BELOW', 'ABOVE_OR_EQUAL', 'BELOW_OR_EQUAL', 'EQUAL'] as const;

/** Thresholds that a measure takes which is a number. */
export interface Threshold {
  operators: readonly (typeof OPERATORS)[number][];
  least: number;
  most: number;
  /** Text of what the number counts, with an example. */
  unit: string;
}
