/**
 * Asks in a native dialog, which keeps the focus inside and closes with Escape.
 */

import { h, render } from "./html.js";

/**
 * @typedef {import("./types.js").Question & Partial<import("./types.js").TextQuestion> & { cancel: string }} Question
 */

/** What cancels the open question of a parent. @type {WeakMap<Element, () => void>} */
const open = new WeakMap();

/**
 * Return what was entered, "" if there is no field, or null if the question was cancelled.
 *
 * @param {Element} parent
 * @param {Question} question
 * @returns {Promise<string | null>}
 */
export function askInDialog(parent, question) {
  return new Promise((resolve) => {
    const close = (/** @type {string | null} */ result) => {
      // The event of closing comes later, when another question may be open.
      if (open.get(parent) !== cancel) return;
      open.delete(parent);
      // This gives the focus back to the button that asked.
      parent.querySelector("dialog")?.close();
      render(parent, null);
      resolve(result);
    };
    const cancel = () => close(null);
    open.get(parent)?.();
    open.set(parent, cancel);
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      close(parent.querySelector("input")?.value.trim() ?? "");
    };
    render(parent, renderDialog(question, submit, cancel));
    parent.querySelector("dialog")?.showModal();
  });
}

/**
 * @param {Question} question
 * @param {EventListener} submit
 * @param {EventListener} cancel
 */
export function renderDialog(question, submit, cancel) {
  const { title, text, content, label, value, maxLength } = question;
  return h(
    "dialog",
    { key: title, "aria-labelledby": "dialog-title", onclose: cancel },
    h(
      "form",
      { onsubmit: submit },
      h("h2", { id: "dialog-title" }, title),
      text && h("p", { dir: "auto" }, text),
      content,
      label &&
        h("label", null, label, h("input", { required: true, maxlength: maxLength ?? 255, ".value": value ?? "" })),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", onclick: cancel }, question.cancel),
        h("button", { type: "submit", class: question.isDangerous && "danger" }, question.confirm),
      ),
    ),
  );
}
