/**
 * The style of the page and of the card. Each theme variable has a fallback, because themes need not set it.
 */

/** The colours of the bar's parts, with a contrast of 3:1 to light and to dark backgrounds. */
export const PART_COLORS = {
  instructions: "#4a78d0",
  home: "#1c8f86",
  tools: "#9a5fd0",
  facts: "#c2571a",
  history: "#5a8a1e",
  live: "#a87a00",
  question: "#d04a86",
  answer: "#7d7d7d",
};

const PART_RULES = Object.entries(PART_COLORS)
  .map(([name, color]) => `.part-${name} { background-color: ${color}; }`)
  .join("\n");

const BASE = `
:host {
  --page-text: var(--primary-text-color, #141414);
  --page-quiet: var(--secondary-text-color, #5e5e5e);
  --page-card: var(--card-background-color, #fff);
  --page-line: var(--divider-color, rgba(127, 127, 127, 0.4));
  --page-accent: var(--primary-color, #03a9f4);
  --page-space: var(--ha-space-4, 16px);
  --page-radius: var(--ha-border-radius-lg, 12px);
  color: var(--page-text);
  font-family: var(--ha-font-family-body, system-ui, sans-serif);
  font-size: var(--ha-font-size-m, 14px);
  line-height: var(--ha-line-height-normal, 1.6);
}
*, *::before, *::after { box-sizing: border-box; }
[hidden] { display: none !important; }
h2, h3, h4, p, dl, dd, ul, ol, figure { margin: 0; padding: 0; }
ul, ol { list-style: none; }
h2 { font-size: 1.3em; line-height: 1.3; }
h3 { font-size: 1.1em; line-height: 1.3; }
a { color: inherit; }
bdi, [dir="auto"] { overflow-wrap: anywhere; }
.quiet { color: var(--page-quiet); }
.small { font-size: 0.9em; }
.error { border-inline-start: 4px solid var(--error-color, #db4437); padding-inline-start: 8px; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 2px solid var(--page-text); outline-offset: 2px; border-radius: 4px; }
.bar-box { position: relative; padding-block: 6px; margin-block: 8px; }
.bar { display: flex; height: 24px; overflow: hidden; border-radius: 6px; box-shadow: inset 0 0 0 1px var(--page-quiet); }
.part { height: 100%; border-inline-end: 1px solid var(--page-card); transition: inline-size 0.3s; }
.part-free { border: 0; }
@media (prefers-reduced-motion: reduce) { .part { transition: none; } }
.mark { position: absolute; top: 0; bottom: 0; width: 0; border-inline-start: 2px dashed var(--page-text); }
.mark-model { border-inline-start-style: solid; }
.mark-low_water { border-inline-start-style: dotted; }
.legend { width: auto; border-collapse: collapse; font-size: 0.9em; }
.legend th, .legend td { padding-block: 1px; padding-inline: 0 12px; text-align: start; font-weight: normal; vertical-align: top; }
.legend td { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
.swatch { display: inline-block; width: 12px; height: 12px; margin-inline-end: 8px; border-radius: 3px; }
.swatch.part-free { box-shadow: inset 0 0 0 1px var(--page-quiet); }
.swatch.mark { position: static; width: 12px; border-radius: 0; margin-inline: 5px 3px; height: 14px; vertical-align: -2px; }
${PART_RULES}
`;

const PAGE = `
:host { display: block; background: var(--primary-background-color, #fafafa); }
.shell { display: flex; flex-direction: column; min-height: 0;
  height: calc(100dvh - env(safe-area-inset-top, 0px) - env(safe-area-inset-bottom, 0px)); }
header { display: flex; align-items: center; gap: 8px; min-height: var(--header-height, 56px); padding-inline: 12px;
  background: var(--app-header-background-color, var(--page-accent)); color: var(--app-header-text-color, #fff); flex: none; }
header h1 { font-size: 24px; font-weight: 400; margin: 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.menu { background: none; border: 0; color: inherit; font-size: 24px; min-width: 44px; }
.tabs { display: flex; overflow-x: auto; flex: none; background: var(--page-card); border-block-end: 1px solid var(--page-line); scrollbar-width: thin; }
.tabs a { padding: 10px var(--page-space); min-height: 44px; text-decoration: none; white-space: nowrap; border-block-end: 3px solid transparent; color: var(--page-text); }
.tabs a[aria-current="page"] { border-color: var(--page-accent); font-weight: 600; }
.tabs a:focus-visible { outline-offset: -3px; }
.status { flex: none; padding: 8px var(--page-space); background: var(--page-card); border-block-end: 1px solid var(--page-line); overflow-wrap: anywhere; }
.status:empty { padding: 0; border: 0; }
.status.error { border-inline-start: 6px solid var(--error-color, #db4437); }
/* Relative, so that what is hidden from sight scrolls with the view and does not make the document longer. */
main { position: relative; flex: 1; min-height: 0; overflow: auto; overflow-x: hidden; padding: var(--page-space); }
main:focus { outline: none; }
main > * { max-width: 1200px; margin-inline: auto; }
main > * + * { margin-block-start: var(--page-space); }
.card { background: var(--page-card); border-radius: var(--page-radius); border: 1px solid var(--page-line); padding: var(--page-space); min-width: 0; }
.card > * + * { margin-block-start: 8px; }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; }
.spread { justify-content: space-between; }
button, .button { font: inherit; min-height: 36px; padding: 4px 14px; border: 1px solid var(--page-quiet); border-radius: 18px; background: transparent; color: var(--page-text); cursor: pointer; }
button:hover { background: rgba(127, 127, 127, 0.15); }
button:disabled { opacity: 0.5; cursor: default; }
button.danger { border-color: var(--error-color, #db4437); }
label { display: inline-flex; flex-direction: column; gap: 2px; max-width: 100%; font-size: 0.9em; color: var(--page-quiet); }
label.inline { flex-direction: row; align-items: center; gap: 8px; color: var(--page-text); font-size: inherit; }
select, input, textarea { font: inherit; max-width: 100%; min-height: 36px; padding: 4px 8px; border: 1px solid var(--page-quiet); border-radius: 6px;
  background: var(--page-card); color: var(--page-text); color-scheme: inherit; }
option { background: var(--page-card); color: var(--page-text); }
input[type="checkbox"], input[type="radio"] { min-height: 20px; width: 20px; accent-color: var(--page-accent); }
summary { cursor: pointer; padding-block: 8px; }
details.card { padding-block: 4px; }
details.card[open] { padding-block-end: var(--page-space); }
table { border-collapse: collapse; width: 100%; }
th { text-align: start; font-weight: 600; }
th, td { padding-block: 6px; padding-inline: 0 12px; vertical-align: top; overflow-wrap: anywhere; }
table.lines tr + tr, table.lines thead + tbody tr { border-block-start: 1px solid var(--page-line); }
td.number, th.number { text-align: end; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; max-width: 100%; }
dialog { max-width: min(560px, calc(100vw - 32px)); max-height: calc(100vh - 64px); overflow: auto; border: 1px solid var(--page-line); border-radius: var(--page-radius);
  padding: 20px; background: var(--page-card); color: var(--page-text); }
dialog::backdrop { background: rgba(0, 0, 0, 0.5); }
dialog form > * + * { margin-block-start: 12px; }
dialog label, dialog input { width: 100%; }
dialog .row { justify-content: flex-end; }
.chips { display: flex; flex-wrap: wrap; gap: 4px; }
.chip { padding: 0 8px; border: 1px solid var(--page-line); border-radius: 10px; font-size: 0.85em; overflow-wrap: anywhere; }
.split { display: grid; gap: var(--page-space); grid-template-columns: minmax(0, 1fr); }
.split > * { min-width: 0; }
.stack > * + * { margin-block-start: var(--page-space); }
.list { max-height: 40vh; overflow-y: auto; }
.list a { display: block; padding: 8px; border-radius: 8px; text-decoration: none; border-inline-start: 4px solid transparent; }
.list a:focus-visible { outline-offset: -2px; }
.list a:hover { background: rgba(127, 127, 127, 0.15); }
.list a[aria-current="true"] { border-color: var(--page-accent); background: rgba(127, 127, 127, 0.15); }
/* Nothing is painted outside of an item: the padding has the room for the focus rings. */
.items > li { content-visibility: auto; contain-intrinsic-size: auto 120px; padding: 10px 4px; }
.items > li + li { border-block-start: 1px solid var(--page-line); }
.items > li > * + * { margin-block-start: 4px; }
.trim-line { border-block-start: 3px dotted var(--page-text); padding-block-start: 4px; text-align: center; font-size: 0.9em; }
.said { font-weight: 600; }
.leaving { border-inline-start: 4px dotted var(--page-quiet); padding-inline-start: 8px; }
.list a[aria-current="true"] .quiet, .list a:hover .quiet { color: inherit; }
.long { max-height: 60vh; overflow: auto; }
.message { border-inline-start: 3px solid var(--page-line); padding-inline-start: 8px; }
@media (min-width: 900px) {
  .split { grid-template-columns: 320px minmax(0, 1fr); align-items: start; }
  .list { max-height: 65vh; }
  .bar-grid { display: flex; align-items: flex-start; gap: 32px; flex-wrap: wrap; }
}
@media (max-width: 600px) {
  table.cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.cards, table.cards tbody, table.cards tr, table.cards td, table.cards th { display: block; text-align: start; padding-inline-end: 0; }
  table.cards tr { padding-block: 8px; }
  table.cards td { padding-block: 2px; }
  table.cards td[data-label]::before { content: attr(data-label) ": "; color: var(--page-quiet); }
}
`;

const CARD = `
:host { display: block; height: 100%; }
.tile { height: 100%; overflow: auto; background: var(--ha-card-background, var(--page-card)); color: var(--page-text); padding: var(--page-space);
  border: 1px solid var(--ha-card-border-color, var(--page-line)); border-radius: var(--ha-card-border-radius, var(--page-radius)); }
.tile > * + * { margin-block-start: 4px; }
.week { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 16px; }
.week dt { color: var(--page-quiet); }
`;

const PARTS = `
pre { margin: 0; font-family: var(--ha-font-family-code, monospace); font-size: 0.9em; }
h4 { margin: 0; font-size: 1em; }
.pairs { display: grid; grid-template-columns: minmax(6em, max-content) minmax(0, 1fr); gap: 4px 16px; }
.pairs dt { color: var(--page-quiet); }
.cards .number { white-space: nowrap; }
.cards th { overflow-wrap: normal; }
.part-of + .part-of { margin-block-start: 16px; }
.lines-sent > li + li { margin-block-start: 4px; }
.sent { padding-inline-start: 12px; }
.sent > * + * { margin-block-start: 8px; }
.lost { max-height: 30vh; overflow-y: auto; }
.facts > li { contain-intrinsic-size: auto 44px; padding-block: 2px; }
.fact { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 16px; }
/* The empty text after the slash is what a screen reader says. */
.fact::before { content: "\\25b8" / ""; color: var(--page-quiet); margin-inline-end: -8px; }
details[open] > .fact::before { content: "\\25be" / ""; }
.fact .said { flex: 1 1 20em; }
.facts details[open] { padding-block-end: 6px; }
.facts details > * + * { margin-block-start: 4px; }
.turns > li { content-visibility: auto; contain-intrinsic-size: auto 56px; padding: 2px 4px; }
.turns > li + li { border-block-start: 1px solid var(--page-line); }
.turn { display: grid; gap: 0 16px; grid-template-columns: minmax(0, 1fr) max-content; padding: 6px 4px; border-radius: 8px; text-decoration: none; }
.turn:hover { background: rgba(127, 127, 127, 0.15); }
.turn:focus-visible { outline-offset: -2px; }
.turn > * { min-width: 0; }
.turn .words > *, .turn .when > * { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.turn .words > .error { white-space: normal; }
.turn .figures { text-align: end; font-variant-numeric: tabular-nums; }
.turn .figures > * { display: block; white-space: nowrap; }
.details { padding: 8px; border-inline-start: 4px solid var(--page-accent); }
.details > * + * { margin-block-start: 16px; }
@media (min-width: 900px) {
  .turn { grid-template-columns: 11em minmax(0, 3fr) minmax(0, 2fr) 6em; }
}
.wide { display: flex; margin-block-end: 8px; }
.chart { display: grid; grid-template: auto 180px auto auto / auto minmax(0, 1fr); gap: 4px 8px; margin-block: 12px; }
.unit { grid-column: 1 / -1; margin-block-end: 8px; }
.axis, .plot { grid-row: 2; }
.names, .plot { grid-column: 2; }
.names { grid-row: 3; }
.axis { display: flex; flex-direction: column; justify-content: space-between; text-align: end; margin-block: -0.7em; }
.plot, .names { display: grid; grid-auto-columns: minmax(0, 64px); grid-auto-flow: column; gap: 2px; }
.plot { border-block-end: 1px solid var(--page-quiet); background: repeating-linear-gradient(to top, transparent 0 44px, var(--page-line) 44px 45px); }
.column { display: flex; flex-direction: column-reverse; min-width: 0; }
.names span { white-space: nowrap; }
.chart figcaption { grid-area: 4 / 1 / auto / -1; }
.chip i { display: inline-block; inline-size: 10px; block-size: 10px; margin-inline-end: 6px; }
.step + .step { margin-block-start: 6px; }
.track { position: relative; block-size: 14px; border-radius: 4px; background: rgba(127, 127, 127, 0.2); }
.span { position: absolute; block-size: 100%; min-inline-size: 2px; border-radius: 4px; }
.span-request { background: #4a78d0; }
.span-tool { background: #9a5fd0; }
.span-recognition { background: #1c8f86; }
.tick { position: absolute; inset-block: -2px; inline-size: 2px; background: var(--page-text); }
@media (max-width: 600px) {
  .pairs { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .pairs dd { margin-block-end: 6px; }
  table.cards td.empty { display: none; }
  .turn .when { display: flex; gap: 8px; grid-column: 1 / -1; }
  .turn .by { grid-column: 1 / -1; grid-row: 3; }
}
`;

/** @type {Map<string, CSSStyleSheet>} */
const sheets = new Map();

/**
 * Give a shadow root the style of the page or of the card.
 *
 * @param {ShadowRoot} root
 * @param {"page" | "card"} kind
 */
export function applyStyle(root, kind) {
  let sheet = sheets.get(kind);
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(BASE + (kind === "page" ? PAGE + PARTS : CARD));
    sheets.set(kind, sheet);
  }
  root.adoptedStyleSheets = [sheet];
}
