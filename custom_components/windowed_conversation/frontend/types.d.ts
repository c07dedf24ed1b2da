/**
 * The types that the page's modules share, for the type checker. No browser loads this file.
 */

export type Child = import("./html.js").Child;
/** The state of the page in its address. */
export type State = Record<string, string>;
export type Translate = (key: string, placeholders?: Record<string, string | number>) => string;
type Unsubscribe = () => Promise<void> | void;

/** What the page uses of Home Assistant's own object. */
export interface Hass {
  callWS: (message: Record<string, unknown>) => Promise<any>;
  connection: {
    subscribeMessage: (callback: (event: any) => void, message: Record<string, unknown>) => Promise<Unsubscribe>;
    addEventListener: (type: string, listener: () => void) => void;
    removeEventListener: (type: string, listener: () => void) => void;
  };
  loadBackendTranslation: (category: string, domain: string) => Promise<Translate>;
  language: string;
  locale: { language: string; number_format?: string; time_format?: string; time_zone?: string };
  config: { time_zone: string };
  states: Record<string, any>;
  entities: Record<string, { entity_id: string; platform?: string; device_id?: string }>;
  devices: Record<string, { config_entries?: string[] }>;
  dockedSidebar?: string;
}

export interface Agent {
  entity_id: string;
  /** The id of its subentry. */
  id: string;
  name: string;
  device_id: string | null;
}

export interface Overview {
  user: { is_admin: boolean };
  agents: Agent[];
  closed_accounts: string[];
}

export interface Question {
  title: string;
  text?: string;
  content?: Child;
  confirm: string;
  isDangerous?: boolean;
}

export interface TextQuestion extends Question {
  label: string;
  value?: string;
  maxLength?: number;
}

/** What a view is given. */
export interface Context {
  hass: Hass;
  overview: Overview;
  narrow: boolean;
  /** Return a text of the page. */
  t: Translate;
  /** Return the text of a value in the integration's forms and actions. */
  label: (selector: string, value: string) => string;
  call: (name: string, data?: Record<string, unknown>) => Promise<any>;
  /** Change the state in the address, and load again. A value of null or "" removes a key. */
  update: (patch: Record<string, string | null>, options?: { replace?: boolean }) => void;
  /** Return the address of a changed state. */
  link: (patch: Record<string, string | null>) => string;
  reload: () => Promise<void>;
  /** Do something, show the text `done` or the error, and load again. Return whether it succeeded. */
  act: (action: () => Promise<unknown>) => Promise<boolean>;
  /** Show a text in the status line. */
  say: (text: string, options?: { isError?: boolean }) => void;
  describe: (error: unknown) => Promise<string>;
  confirm: (question: Question) => Promise<boolean>;
  /** Return the entered text, or null. */
  ask: (question: TextQuestion) => Promise<string | null>;
}

/** An event of the subscription: the conversations that have changed. */
export interface FiguresEvent {
  conversations: (Pick<Row, "entity_id" | "conversation_id"> & Partial<Row>)[];
}

export interface View {
  name: string;
  load: (context: Context, state: State) => Promise<any>;
  render: (context: Context, state: State, data: any) => Child;
  /** Return the data after an event, and whether they have to be loaded again: all, or what `refresh` loads. */
  receive?: (state: State, data: any, event: FiguresEvent) => { data: any; isStale: boolean; needsAll?: boolean };
  /** Return the data with what an event has made stale. */
  refresh?: (context: Context, state: State, data: any) => Promise<any>;
}

/** The figures of a window. */
export interface Figures {
  exchanges: number;
  messages: number;
  tokens: number;
  newest_tokens: number;
  live_tokens: number | null;
  max_tokens: number;
  over_budget: boolean;
  prefix_tokens: number;
  protected_tokens: number;
  low_water_tokens: number;
  evicted: { exchanges: number; messages: number; tokens: number };
  trims: number;
}

/** The parts of an agent's requests, in tokens. */
export interface Weight {
  instructions: number;
  home: number;
  tools: number;
  facts: number | null;
  live_context: number;
  window: number;
  answer: number;
  model: number | null;
}

/** A conversation in the list. */
export interface Row {
  entity_id: string;
  conversation_id: string;
  agent: string;
  person: string | null;
  device: string | null;
  automation: string | null;
  /** Its first words, or empty. */
  title: string;
  source: string;
  last_used: string;
  figures: Figures;
}

export interface Exchange {
  /** Counted back from the newest one, which is 1. */
  exchange: number;
  number: number;
  time: string | null;
  said: string;
  answer: string;
  is_cut: boolean;
  route: string | null;
  tools: string[];
  tokens: number;
  messages: number;
  tags: string[];
  is_summary: boolean;
  is_incomplete: boolean;
  is_pinned: boolean;
}

export interface Conversation extends Row {
  weight: Weight | null;
  /** The numbers of the exchanges that the next trim evicts. */
  leaves_first: number[];
  exchanges: Exchange[];
}

export interface Message {
  role: string;
  content: any;
  name?: string;
  tool_calls?: { name: string; arguments: unknown }[];
}

export interface ConversationData {
  rows: Row[];
  opened: Conversation | null;
  /** How many exchanges and trims the open conversation had lost when it was loaded. */
  removed: number;
  messages: Message[] | null;
  problem: string;
}
