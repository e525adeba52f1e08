/** Part of the machine as `quarterdeck doctor` found it. */
export interface Finding {
  name: string;
  state: 'ok' | 'missing' | 'broken';
  /** Version or address. */
  found: string;
  /** Sentences on what is missing and what would mend it. */
  advice: string[];
}
