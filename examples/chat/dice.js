// The tool of the chat apps, which rolls a die. A model as small as theirs calls tools at random, so the apps say when it must.

const sides = { type: "integer", minimum: 2, maximum: 20 };
/** The JSON schema of the tool's argument. */
export const parameters = { type: "object", properties: { sides }, required: ["sides"] };
/** Runs the tool. */
export const roll = ({ sides }) => ({ rolled: 1 + Math.floor(Math.random() * sides) });
/** Whether a message asks for a die. */
export const asksToRoll = (message) => /\broll\b/i.test(JSON.stringify(message));
