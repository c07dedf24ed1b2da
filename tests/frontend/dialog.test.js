import assert from "node:assert/strict";
import { test } from "node:test";

import { renderDialog } from "../../custom_components/windowed_conversation/frontend/dialog.js";
import { collectText, findElements } from "./nodes.js";

const QUESTION = { title: "Forget?", confirm: "Forget", cancel: "Cancel" };
const ignore = () => {};

test("a question without a label has no field", () => {
  assert.deepEqual(
    findElements(renderDialog(QUESTION, ignore, ignore), ({ tag }) => tag === "input"),
    [],
  );
});

test("the field of a question has a label and a limit", () => {
  const [label] = findElements(
    renderDialog({ ...QUESTION, label: "Name" }, ignore, ignore),
    ({ tag }) => tag === "label",
  );
  const [input] = findElements(label, ({ tag }) => tag === "input");
  assert.deepEqual([collectText(label), input.props.maxlength], [["Name"], 255]);
});

test("a question can be cancelled by its button and by closing the dialog", () => {
  const dialog = renderDialog(QUESTION, ignore, ignore);
  const [button] = findElements(dialog, ({ props }) => props.type === "button");
  assert.deepEqual([dialog.props.onclose, button.props.onclick], [ignore, ignore]);
});
