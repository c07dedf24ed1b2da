/** What tests look for in rendered nodes. */

export const PROFILE = /** @type {any} */ ({
  language: "en",
  locale: { language: "en" },
  config: { time_zone: "UTC" },
});

/** Return the texts in a node and below it. */
export function collectText(node) {
  if (Array.isArray(node)) return node.flatMap(collectText);
  if (node?.tag) return collectText(node.children);
  return node ? [String(node)] : [];
}

/** Return the elements in a node and below it that pass a test. */
export function findElements(node, isWanted) {
  if (Array.isArray(node)) return node.flatMap((each) => findElements(each, isWanted));
  if (!node?.tag) return [];
  return [...(isWanted(node) ? [node] : []), ...findElements(node.children, isWanted)];
}
