/** Part of the machine as `quarterdeck doctor` found it, with a sentence each on what is missing and what would mend it. */
export interface Finding {
  name: string;
  state: 'ok' | 'missing' | 'broken';
  /** What was found: a version, an address. */
  found: string;
  advice: string[];
}
