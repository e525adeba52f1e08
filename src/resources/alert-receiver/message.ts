import { cut, cutLines, escapeSlackMarkup, onOneLine } from '#kernel/chat-text.ts';

/** Text of a message: what Quarterdeck says, and values that people chose, which no receiver may read as markup, mention or link. */
export interface MessagePart {
  text: string;
  /** True for values that people chose. */
  foreign?: boolean;
}

/** Longest text of a message, in characters: Discord takes 2,000. */
const MOST_CHARACTERS = 1900;
const MOST_OF_MAIL = 20_000;
const MOST_OF_SUBJECT = 150;
const escapeMarkdown = (text: string): string => text.replaceAll(/[\\*_~`|<>[\]()#-]/g, (one) => `\\${one}`);

const render = (parts: MessagePart[], escape: (text: string) => string, most = MOST_CHARACTERS): string =>
  cutLines(parts.map((part) => (part.foreign ? escape(onOneLine(part.text)) : part.text)).join(''), most);

/** Returns the text of a mail, which knows no markup, and its first line as the subject. */
export function mailTextOf(parts: MessagePart[]): { subject: string; text: string } {
  const text = render(parts, (value) => value, MOST_OF_MAIL);
  return { subject: cut(text.split('\n', 1)[0]!, MOST_OF_SUBJECT), text: `${text}\n` };
}

/** Returns the body for the service behind a URL: Discord, Teams (Workflows), or the form of Slack's webhooks, which others take too. */
export function bodyFor(url: string, parts: MessagePart[]): object {
  const { hostname, pathname } = new URL(url);
  if (isAt(hostname, ['discord.com', 'discordapp.com']) && !pathname.endsWith('/slack'))
    return { content: render(parts, escapeMarkdown), allowed_mentions: { parse: [] }, flags: 4 };
  if (isAt(hostname, ['logic.azure.com', 'webhook.office.com', 'api.powerplatform.com'])) return teamsBody(parts);
  return { text: render(parts, escapeSlackMarkup) };
}

const isAt = (hostname: string, domains: string[]): boolean =>
  domains.some((domain) => hostname === domain || hostname.endsWith(`.${domain}`));

/** Returns a card whose text run knows no markup. */
const teamsBody = (parts: MessagePart[]) => ({
  type: 'message',
  attachments: [
    {
      contentType: 'application/vnd.microsoft.card.adaptive',
      content: {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        type: 'AdaptiveCard',
        version: '1.4',
        body: render(parts, (text) => text)
          .split('\n')
          .map((text) => ({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text }] })),
      },
    },
  ],
});
