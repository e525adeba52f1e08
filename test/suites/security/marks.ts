import { randomBytes } from 'node:crypto';

/** Returns a unique value. Its middle is letters and digits, which JSON and URLs leave as they are. */
export const mark = (name: string) => `canary-${name}-${randomBytes(12).toString('hex')}`;

/** Returns the encoded forms of a mark: base64, hexadecimal and percent encoding. */
function formsOf(value: string): string[] {
  return value
    .split('\n')
    .filter((line) => line.includes('canary'))
    .flatMap((line) => {
      // The middle of a text in base64 is the same whatever stands before it.
      const base64 = [0, 1, 2].map((at) => Buffer.from(line.slice(at)).toString('base64').slice(4, -6));
      const hex = Buffer.from(line).toString('hex');
      return [line, ...base64, ...base64.map(toUrl), hex, hex.toUpperCase(), encodeURIComponent(line)];
    });
}

const toUrl = (text: string) => text.replaceAll('+', '-').replaceAll('/', '_');

/** Returns every form of marked values, and a function that names the marks in a text. */
export function createMarks(values: Readonly<Record<string, string>>) {
  const forms = Object.entries(values).flatMap(([name, value]) =>
    [...new Set(formsOf(value))].map((form) => ({ name, form })),
  );
  const marksIn = (text: string): string[] => [
    ...new Set(forms.filter(({ form }) => text.includes(form)).map(({ name }) => name)),
  ];
  return { forms, marksIn };
}
