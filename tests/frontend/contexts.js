/** The context that tests give to views: texts are their keys with the placeholders, and calls are recorded. */

import { PROFILE } from "./nodes.js";

export function makeContext(responses = {}, overrides = {}) {
  const calls = [];
  const said = [];
  const patches = [];
  return {
    calls,
    said,
    patches,
    hass: { ...PROFILE, states: {} },
    overview: { user: { is_admin: false }, agents: [{ entity_id: "conversation.one", name: "One" }] },
    t: (key, placeholders = {}) => [key, ...Object.values(placeholders)].join("|"),
    label: (selector, value) => `${selector}:${value}`,
    call: async (name, data) => {
      calls.push([name, data]);
      const response = responses[name];
      if (response instanceof Error) throw response;
      return typeof response === "function" ? response(data) : response;
    },
    update: (patch) => patches.push(patch),
    link: (patch) => `?${new URLSearchParams(patch)}`,
    act: async (action) => {
      await action();
      return true;
    },
    say: (text) => said.push(text),
    describe: async (error) => `described ${error.translation_key ?? error.message}`,
    confirm: async () => true,
    ...overrides,
  };
}

export const TURN = {
  turn_id: "t1",
  time: "2026-01-31T18:00:00+00:00",
  entity_id: "conversation.one",
  conversation_id: "c1",
  person: "Anna",
  device: "Kitchen",
  automation: null,
  route: "model",
  reason: "no_local_match",
  outcome: "answered",
  error: null,
  answered_by: "conversation.one",
  failures: [],
  tools: ["HassTurnOn"],
  failed_tool_calls: 0,
  requests: 2,
  usage: { input: 3012, cached: 1408, output: 25 },
  cost: 0.0012,
  duration: 1.9,
};
