import { BLANK_IS_ABSENT } from '#platform/http/blank.ts';
import { Type, Uuid } from '#platform/http/schema.ts';
import { CommitId } from '#services/sources/git.ts';

/** Fields of entries in a selection of services to deploy. */
export const selectedId = Type.Optional(Uuid);
export const selectedCommit = Type.Optional(CommitId);
export const selectedText = Type.Optional(Type.String({ ...BLANK_IS_ABSENT, maxLength: 255 }));
