/**
 * Builds and updates the page's elements. Values are only ever text or properties, so no value can become markup.
 */

/**
 * @typedef {Record<string, any> & { key?: string | number }} Props
 * @typedef {{ tag: string, props: Props, children: Node_[] }} Element_
 * @typedef {Element_ | string} Node_
 * @typedef {Node_ | number | null | undefined | false | Child[]} Child
 */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "line", "rect", "g"]);

/** The descriptions that `h` made. Any other object is a value, and is printed. @type {WeakSet<object>} */
const described = new WeakSet();

/** The description from which an element was last rendered. @type {WeakMap<Node, Element_>} */
const rendered = new WeakMap();

/**
 * Return the description of an element. Empty children are left out.
 *
 * A property that begins with `on` is an event listener, and one that begins with `.` a JavaScript property; all others
 * are attributes. `true` sets an empty attribute, and `false`, null or undefined removes it. `key` identifies the
 * element among its siblings.
 *
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {Element_}
 */
export function h(tag, props, ...children) {
  const element = { tag, props: props ?? {}, children: flatten(children) };
  described.add(element);
  return element;
}

/**
 * Return the nodes among children, without empty ones. Whatever `h` did not make becomes text.
 *
 * @param {Child[]} children
 * @returns {Node_[]}
 */
export function flatten(children) {
  /** @type {Node_[]} */
  const nodes = [];
  for (const child of children) {
    if (Array.isArray(child)) nodes.push(...flatten(child));
    else if (typeof child === "object" && child && described.has(child)) nodes.push(child);
    else if (child || child === 0 || child === "") nodes.push(String(child));
  }
  return nodes;
}

/**
 * Update the children of a parent. Elements stay in place as long as their tag and key do, with focus and scrolling.
 *
 * @param {Element | ShadowRoot} parent
 * @param {Child} content
 */
export function render(parent, content) {
  updateChildren(parent, flatten([content]));
}

/**
 * @param {Element | ShadowRoot} parent
 * @param {Node_[]} nodes
 */
function updateChildren(parent, nodes) {
  const keyed = findKeyed(parent);
  let place = parent.firstChild;
  for (const node of nodes) {
    const key = typeof node === "string" ? undefined : node.props.key;
    const existing = key === undefined ? place : keyed.get(key);
    if (!existing || !isReusable(existing, node)) {
      parent.insertBefore(create(node), place);
      continue;
    }
    if (existing === place) place = existing.nextSibling;
    else parent.insertBefore(existing, place);
    update(existing, node);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

/**
 * Return the children that have a key, by it.
 *
 * @param {Element | ShadowRoot} parent
 * @returns {Map<string | number, ChildNode>}
 */
function findKeyed(parent) {
  const keyed = new Map();
  for (const child of parent.childNodes) {
    const key = rendered.get(child)?.props.key;
    if (key !== undefined) keyed.set(key, child);
  }
  return keyed;
}

/**
 * @param {ChildNode} existing
 * @param {Node_} node
 */
function isReusable(existing, node) {
  if (typeof node === "string") return existing.nodeType === Node.TEXT_NODE;
  const before = rendered.get(existing);
  return before?.tag === node.tag && before.props.key === node.props.key;
}

/**
 * @param {Node_} node
 * @returns {ChildNode}
 */
function create(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const element = SVG_TAGS.has(node.tag)
    ? document.createElementNS(SVG_NAMESPACE, node.tag)
    : document.createElement(node.tag);
  applyProps(element, {}, node.props);
  rendered.set(element, node);
  updateChildren(element, node.children);
  return element;
}

/**
 * @param {ChildNode} existing
 * @param {Node_} node
 */
function update(existing, node) {
  if (typeof node === "string") {
    if (existing.nodeValue !== node) existing.nodeValue = node;
    return;
  }
  const element = /** @type {Element} */ (existing);
  // A view that keeps a description says that nothing below it has changed.
  if (rendered.get(element) === node) return;
  applyProps(element, rendered.get(element)?.props ?? {}, node.props);
  rendered.set(element, node);
  updateChildren(element, node.children);
}

/**
 * @param {Element} element
 * @param {Props} before
 * @param {Props} after
 */
function applyProps(element, before, after) {
  for (const name of Object.keys({ ...before, ...after })) {
    if (name === "key" || before[name] === after[name]) continue;
    if (name.startsWith("on")) setListener(element, name.slice(2), before[name], after[name]);
    else if (name.startsWith(".")) /** @type {any} */ (element)[name.slice(1)] = after[name];
    else setAttribute(element, name, after[name]);
  }
}

/**
 * @param {Element} element
 * @param {string} type
 * @param {EventListener | undefined} before
 * @param {EventListener | undefined} after
 */
function setListener(element, type, before, after) {
  if (before) element.removeEventListener(type, before);
  if (after) element.addEventListener(type, after);
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {unknown} value
 */
function setAttribute(element, name, value) {
  if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}
