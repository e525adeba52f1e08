export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=';

export type Expression =
  | { kind: 'value'; value: unknown }
  | { kind: 'array' | 'set'; items: Expression[] }
  | { kind: 'object'; entries: [Expression, Expression][] }
  /** Variable, rule or `input`. */
  | { kind: 'name'; name: string; line: number }
  | { kind: 'index'; of: Expression; key: Expression }
  | { kind: 'call'; name: string; args: Expression[] }
  | { kind: 'compare'; operator: Comparison; left: Expression; right: Expression }
  | { kind: 'in'; item: Expression; of: Expression };

export type Statement =
  | { kind: 'expression'; of: Expression }
  | { kind: 'not'; of: Expression }
  | { kind: 'assign'; name: string; of: Expression }
  /** `some x in of`, `some i, x in of`; without `of` it only declares. */
  | { kind: 'some'; names: string[]; of: Expression | null }
  | { kind: 'every'; names: string[]; of: Expression; body: Statement[] };

export interface Rule {
  name: string;
  line: number;
  /** Default, one way to a value, or one way to an element of a set. */
  kind: 'default' | 'value' | 'element';
  value: Expression;
  body: Statement[];
}
