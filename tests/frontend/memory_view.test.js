import assert from "node:assert/strict";
import { test } from "node:test";

import {
  describeLoss,
  describeOrigin,
  describeRetention,
  filterFacts,
  renderPreview,
  view,
} from "../../custom_components/windowed_conversation/frontend/memory_view.js";
import { makeContext } from "./contexts.js";
import { collectText, findElements } from "./nodes.js";

const FACT = {
  id: "fact:7",
  text: "I like tea",
  time: "2026-01-30T10:00:00+00:00",
  person: "Anna",
  private: true,
  confirmed: "2026-01-31T10:00:00+00:00",
  tellings: 1,
  source: "said",
  quote: "remember that I like tea",
  conversation_id: null,
  last_used: null,
  in_profile: false,
  replaced: "",
};
const HOME_FACT = { ...FACT, id: "fact:8", text: "The bins are blue", person: null, private: false, quote: "" };
const DATA = {
  person: { id: "u1", name: "Anna" },
  suggestions: [],
  facts: [FACT, HOME_FACT],
  home_facts_total: 1,
  devices: [],
  retention: [],
};
const ALL_PREVIEWED = {
  facts: 1,
  turns: 2,
  summaries: 0,
  exchanges: 2,
  memories: [{ id: "fact:7", text: "I like tea" }],
};

function findButton(nodes, label) {
  return findElements(nodes, ({ tag, props }) => tag === "button" && props["aria-label"] === label)[0];
}

/** Render the view with the details of all facts open. */
function renderOpened(context, data) {
  const facts = findElements(view.render(context, { view: "memory" }, data), ({ props }) => props.key === "fact");
  for (const fact of facts) fact.props.ontoggle({ target: { open: true } });
  return view.render(context, { view: "memory" }, data);
}

test("a search needs all words, in any order and case", () => {
  assert.deepEqual(filterFacts([FACT, HOME_FACT], " BLUE bins "), [HOME_FACT]);
});

test("a search without words finds all", () => {
  assert.equal(filterFacts([FACT, HOME_FACT], " ").length, 2);
});

test("a fact says who can hear it", () => {
  const text = collectText(view.render(makeContext(), { view: "memory" }, DATA));
  assert.ok(text.includes("memory.only_me"));
  assert.ok(text.includes("memory.everyone"));
});

test("a fact says where it came from and whose it is", () => {
  assert.equal(describeOrigin(makeContext(), FACT), "memory.from_said|Jan 30, 2026 memory.of_person|Anna");
});

test("a fact that is sent with every question says so", () => {
  const data = { ...DATA, facts: [{ ...FACT, in_profile: true }] };
  const text = collectText(renderOpened(makeContext(), data));
  assert.ok(text.includes("memory.in_profile"));
});

test("a fact that was used and is sent with every question says both", () => {
  const data = { ...DATA, facts: [{ ...FACT, in_profile: true, last_used: FACT.time }] };
  const text = collectText(renderOpened(makeContext(), data)).join(" ");
  assert.match(text, /memory\.last_used\|Jan 30, 2026.* memory\.in_profile/);
});

test("a fact that is neither used nor sent says nothing of its use", () => {
  const text = collectText(renderOpened(makeContext(), DATA)).join(" ");
  assert.doesNotMatch(text, /memory\.(last_used|in_profile)/);
});

test("a fact that was stated often says so", () => {
  assert.match(describeOrigin(makeContext(), { ...FACT, tellings: 3 }), /memory.told_often\|3\|Jan 31, 2026$/);
});

test("a fact from an unknown source is just stored", () => {
  assert.match(describeOrigin(makeContext(), { ...FACT, source: "<b>" }), /^memory.from_other/);
});

test("without a person, a sentence says why nothing personal is known", () => {
  const data = { ...DATA, person: null, facts: [HOME_FACT] };
  const text = collectText(view.render(makeContext(), { view: "memory" }, data));
  assert.ok(text.includes("memory.no_person"));
  assert.ok(text.includes("The bins are blue"));
});

test("a fact is forgotten after the preview was confirmed", async () => {
  const context = makeContext({ forget: ALL_PREVIEWED });
  await findButton(renderOpened(context, DATA), "conversation.forget: I like tea").props.onclick();
  assert.deepEqual(context.calls, [
    ["forget", { ids: ["fact:7"], dry_run: true }],
    ["forget", { ids: ["fact:7"] }],
  ]);
});

test("what a fact replaced is shown and brought back", async () => {
  const context = makeContext({ bring_back_fact: { id: "fact:6" } });
  const data = { ...DATA, facts: [{ ...FACT, replaced: "I like coffee" }] };
  const nodes = renderOpened(context, data);
  assert.ok(collectText(nodes).includes("memory.replaced|I like coffee"));
  await findButton(nodes, "memory.bring_back: I like coffee").props.onclick();
  assert.deepEqual(context.calls, [["bring_back_fact", { fact: "fact:7" }]]);
});

test("a fact that replaced nothing has no button to bring something back", () => {
  const nodes = renderOpened(makeContext(), DATA);
  assert.ok(!collectText(nodes).includes("memory.bring_back"));
});

test("nothing is forgotten if the preview was cancelled", async () => {
  const context = makeContext({ forget: ALL_PREVIEWED }, { confirm: async () => false });
  await findButton(renderOpened(context, DATA), "conversation.forget: I like tea").props.onclick();
  assert.deepEqual(context.calls, [["forget", { ids: ["fact:7"], dry_run: true }]]);
});

test("a preview names only what is lost", () => {
  const what = "memory.lost_facts|1, memory.lost_turns|2, and memory.lost_exchanges|2";
  assert.equal(describeLoss(makeContext(), ALL_PREVIEWED), `memory.preview|${what}`);
});

test("a preview of nothing says that nothing is known", () => {
  const preview = { facts: 0, turns: 0, summaries: 0, exchanges: 0 };
  assert.equal(describeLoss(makeContext(), preview), "memory.none_own");
});

test("a preview lists the texts and counts the rest", () => {
  assert.deepEqual(collectText(renderPreview(makeContext(), ALL_PREVIEWED)), ["I like tea", "memory.and_more|2"]);
});

test("facts of the home that are not shown are counted", () => {
  const text = collectText(view.render(makeContext(), { view: "memory" }, { ...DATA, home_facts_total: 4 }));
  assert.ok(text.includes("memory.and_more|3"));
});

test("an agent that keeps nothing says so", () => {
  const agent = { memory: false, memory_days: 90, record_days: 0, record_text_days: 0, persistence: "off" };
  assert.deepEqual(describeRetention(makeContext(), agent), [
    "memory.keeps_no_memory",
    "memory.keeps_no_figures",
    "memory.keeps_conversations|persistence:off",
  ]);
});

test("an agent that keeps all says for how long", () => {
  const agent = { memory: true, memory_days: 90, record_days: 90, record_text_days: 7, persistence: "all" };
  assert.deepEqual(describeRetention(makeContext(), agent).slice(0, 3), [
    "memory.keeps_memory|90 days",
    "memory.keeps_figures|90 days",
    "memory.keeps_texts|7 days",
  ]);
});

test("a turn history without texts says so", () => {
  const agent = { memory: true, memory_days: 1, record_days: 1, record_text_days: 0, persistence: "all" };
  assert.deepEqual(describeRetention(makeContext(), agent).slice(1, 3), [
    "memory.keeps_figures|1 day",
    "memory.keeps_no_texts",
  ]);
});

const SUGGESTION = {
  id: "fact:9",
  text: "Tom takes pills",
  time: new Date().toISOString(),
  quote: "but Tom takes pills",
  replaces: "",
};

test("suggestions come first, those of the week before older ones", () => {
  const older = { ...SUGGESTION, id: "fact:10", text: "The key is in the shed", time: "2020-01-30T10:00:00+00:00" };
  const data = { ...DATA, suggestions: [SUGGESTION, older] };
  const titles = findElements(view.render(makeContext(), { view: "memory" }, data), ({ tag }) => tag === "h2");
  assert.deepEqual(titles.flatMap(collectText).slice(0, 3), [
    "memory.learned_this_week",
    "memory.learned_earlier",
    "memory.title",
  ]);
});

test("without suggestions, nothing says that there are none", () => {
  const text = collectText(view.render(makeContext(), { view: "memory" }, DATA)).join(" ");
  assert.doesNotMatch(text, /memory\.learned/);
});

test("a suggestion shows its quote, and what it would replace", () => {
  const data = { ...DATA, suggestions: [{ ...SUGGESTION, replaces: "Tom takes vitamins" }] };
  const text = collectText(view.render(makeContext(), { view: "memory" }, data));
  assert.ok(text.includes("memory.quote|but Tom takes pills"));
  assert.ok(text.includes("memory.would_replace|Tom takes vitamins"));
});

for (const [decision, label] of [
  ["keep", "memory.for_me"],
  ["share", "memory.for_everybody"],
  ["dismiss", "memory.wrong"],
]) {
  test(`a suggestion is decided with a button: ${decision}`, async () => {
    const context = makeContext({ decide_suggestion: {} });
    const nodes = view.render(context, { view: "memory" }, { ...DATA, suggestions: [SUGGESTION] });
    await findButton(nodes, `${label}: Tom takes pills`).props.onclick();
    assert.deepEqual(context.calls, [["decide_suggestion", { fact: "fact:9", decision }]]);
  });
}
