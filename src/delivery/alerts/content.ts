import { cut } from '#kernel/chat-text.ts';
import type { MessagePart } from '#resources/alert-receiver/index.ts';

/** Service, or other thing, that a message tells of; the times are ISO 8601. */
interface Subject {
  id: string;
  name: string;
  detail: string;
  since: string;
  /** Time at which the condition was found to hold no more; absent while it holds. */
  until?: string;
}

/** Content of a message, fixed once a worker begins to send it. */
export interface Content {
  rule: string;
  severity: string;
  happened: string;
  /** Name of all that fire, such as `these services`; absent in messages of releases that knew of services only. */
  subjects?: string;
  summary: string | null;
  runbook_url: string | null;
  firing: Subject[];
  resolved: Subject[];
}

/** Services that a message names. */
const MOST_NAMED = 20;
/** Services that fire, or that are over, of which a message keeps what it would tell; it is as large as that while it waits. */
const MOST_SUBJECTS = 200;
/** Characters of a summary or a detail. */
const MOST_CHARACTERS = 300;
/** Characters of the URL of a runbook; of a longer one the message would lose the line. */
const MOST_OF_URL = 1_000;

/**
 * Returns the content of a message that tells what an unsent one would have told, and what came after it. Each service is named once, with its
 * last state: one that broke and was mended unsent is told with both times.
 */
export function merge(unsent: Content | undefined, later: Content): Content {
  if (!unsent) return limited(later);
  const isNew = new Set([...later.firing, ...later.resolved].map(({ id }) => id));
  const kept = (subjects: Subject[]) => subjects.filter(({ id }) => !isNew.has(id));
  return limited({
    ...later,
    firing: [...kept(unsent.firing), ...later.firing],
    resolved: [...kept(unsent.resolved), ...later.resolved],
  });
}

/** Returns a content that is not larger than a message may be while it waits. */
function limited(content: Content): Content {
  const shortened = (subjects: Subject[]) =>
    subjects.slice(0, MOST_SUBJECTS).map((subject) => ({ ...subject, detail: cut(subject.detail, MOST_CHARACTERS) }));
  return { ...content, firing: shortened(content.firing), resolved: shortened(content.resolved) };
}

/** Returns the text of a message. Its head has what applies to all services, so that a message that is cut loses names only. */
export function partsOf(content: Content): MessagePart[] {
  const { rule, severity, happened, subjects = 'these services', summary, runbook_url, firing, resolved } = content;
  const fires = firing.length > 0;
  return [
    { text: fires ? `${severity}: ` : 'Resolved: ' },
    { text: rule, foreign: true },
    { text: `\n${fires ? 'True' : 'No longer true'} of ${subjects}: ${happened}.` },
    ...(summary ? [{ text: '\n' }, { text: cut(summary, MOST_CHARACTERS), foreign: true }] : []),
    ...(runbook_url ? [{ text: `\nRunbook: ${runbookOf(new URL(runbook_url))}` }] : []),
    ...linesOf(firing),
    ...(fires && resolved.length > 0 ? [{ text: '\nNo longer:' }] : []),
    ...linesOf(resolved),
  ];
}

const runbookOf = ({ href }: URL): string =>
  href.length <= MOST_OF_URL ? href : 'its URL is too long for a message and stands in `presentation` of the rule';

function linesOf(subjects: Subject[]): MessagePart[] {
  const more = subjects.length - MOST_NAMED;
  const count = subjects.length < MOST_SUBJECTS ? `${more} more` : `${more} more at least`;
  return [
    ...subjects.slice(0, MOST_NAMED).flatMap(({ name, detail, since, until }) => [
      { text: '\n• ' },
      { text: name, foreign: true },
      ...(detail === '' ? [] : [{ text: ': ' }, { text: detail, foreign: true }]),
      {
        text: until === undefined ? `, since ${minuteOf(since)}` : `, from ${minuteOf(since)} to ${minuteOf(until)}`,
      },
    ]),
    ...(more > 0 ? [{ text: `\n… and ${count}` }] : []),
  ];
}

/** Returns a time as `2026-01-31 09:05 UTC`. */
const minuteOf = (time: string): string => `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
