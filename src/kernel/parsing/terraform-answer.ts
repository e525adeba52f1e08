import { Texts, toParts } from '#kernel/parsing/parts.ts';
import { contentOf, type StateContent, type StateResource } from '#kernel/parsing/terraform-content.ts';
import { readPlan } from '#kernel/parsing/terraform-plan.ts';
import { readTerraformState } from '#kernel/parsing/terraform-state.ts';
import type { StateOptions, StateReading, TerraformAnswer } from '#kernel/parsing/formats.ts';

/** Resources of a state that are listed. */
const MAX_RESOURCES = 10_000;
/** Largest attributes of one resource that are shown, as JSON. */
const MAX_ATTRIBUTES = 1024 * 1024;

/** Reads a state of Terraform's for its lists; null for one that OpenTofu has encrypted. */
export const readStateTexts = (text: string, { secrets }: StateOptions): Texts<StateReading> | null => {
  const content = contentOf(readTerraformState(text), secrets);
  return content && new Texts(readingOf(content));
};

/** Reads what a run of Terraform leaves: its plan, and its state where that is kept elsewhere. Text that is no answer has neither. */
export function readTerraformAnswer(text: string, { secrets }: StateOptions): Texts<TerraformAnswer> {
  const { show, state, too_large: tooLarge } = answerIn(text);
  const content = state ? contentOf(readTerraformState(state), secrets) : null;
  return new Texts({
    tooLarge: tooLarge === true,
    plan: show ? JSON.stringify(readPlan(show, secrets)) : null,
    state: content && readingOf(content),
  });
}

/** Fields of the object that `run.sh` writes. */
interface Answer {
  show?: unknown;
  state?: unknown;
  too_large?: unknown;
}

function answerIn(text: string): Answer {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function readingOf({ resources, outputs }: StateContent): StateReading {
  const listed = [...new Map(resources.map((one) => [one.address, one])).values()].slice(0, MAX_RESOURCES);
  return {
    resources: toParts(listed.map(listable)),
    outputs: toParts(
      outputs.map(({ name, value, sensitive }) => ({
        name,
        sensitive,
        value: typeof value === 'string' ? value : JSON.stringify(value ?? null),
      })),
    ),
  };
}

const listable = (resource: StateResource): StateResource =>
  JSON.stringify(resource.attributes).length <= MAX_ATTRIBUTES
    ? resource
    : { ...resource, attributes: { hidden: `(larger than ${MAX_ATTRIBUTES / 1024} KiB)` } };
