// @ts-check
// Canned states of the protocol, one a link: /live/<name> plays it. For tests
// and screenshots only.

const now = () => Date.now();
const soon = (/** @type {number} */ min, s = 0) => new Date(now() + min * 60_000 + s * 1000).toISOString();

const page = { origin: "https://login.northbank.example", host: "login.northbank.example", registrable: "northbank.example", secure: true, title: "Sign in — Northbank", loading: false, crashed: false };
const tabs = [
  { id: "t1", index: 0, title: "Sign in — Northbank", origin: "https://login.northbank.example", active: true },
  { id: "t2", index: 1, title: "Statements for October", origin: "https://docs.northbank.example", active: false },
];

/** @param {object} [more] */
const handoff = (more = {}) => ({
  id: "hof_1", version: 1, reason: "login", instruction: "Please sign in to your account. I will fetch the October statement after that.", task: "Collect October statements",
  site: "Northbank", deadline: soon(9, 42), attempts: 1, verify: { checked: ["url"], held: false }, status: "RUNNING", parked: false, ...more,
});

/** @param {object} [more] */
const state = (more = {}) => ({
  t: "state", n: 1, now: now(), driver: "you", can_drive: true, session: { deadline: soon(40), generation: 1 }, handoff: handoff(), tabs, page,
  dialog: null, questions: [], downloads: [], viewers: 1, ...more,
});

/** @typedef {object} Scenario
 * @property {number} [claim] status of the claim; 200 unless told
 * @property {number} [number] what a waiting device shows
 * @property {() => any} [state]
 * @property {string} [picture] which page is shown
 * @property {boolean} [touch]
 * @property {{end?: string, drop?: boolean, silent?: boolean, focus?: number}} [then] */

/** @type {Record<string, Scenario>} */
export const scenarios = {
  driving: { state: () => state() },
  mouse: { state: () => state(), touch: false },
  wide: { state: () => state(), touch: false, picture: "signin-wide" },
  code: { state: () => state({ handoff: handoff({ reason: "2fa", instruction: "Enter the code from your text message." }), tabs: tabs.slice(0, 1) }), picture: "code", then: { focus: 2 } },
  watching: { state: () => state({ driver: "agent", can_drive: false, handoff: null }) },
  unsafe: { state: () => state({ page: { ...page, origin: "http://login.northbank.example", secure: false }, handoff: handoff({ deadline: soon(1, 12) }) }) },
  countdown: { state: () => state({ handoff: handoff({ verify: { checked: ["url"], held: true }, countdown_ms: 5000 }) }) },
  again: { state: () => state({ handoff: handoff({ attempts: 2, version: 2 }) }) },
  crashed: { state: () => state({ page: { ...page, crashed: true } }) },
  lost: { state: () => state(), then: { drop: true } },
  connecting: { state: () => null, then: { silent: true } },
  number: { claim: 409, number: 47 },
  expired: { claim: 410 },
  unknown: { claim: 401 },
  finished: { state: () => state(), then: { end: "finished" } },
  cancelled: { state: () => state(), then: { end: "cancelled" } },
  timed_out: { state: () => state(), then: { end: "timed_out" } },
  parked: { state: () => state(), then: { end: "parked" } },
  stopped: { state: () => state(), then: { end: "stopped" } },
  revoked: { state: () => state(), then: { end: "revoked" } },
  moved: { state: () => state(), then: { end: "moved" } },
  confirm: { state: () => state({ dialog: { kind: "confirm", message: "Sign out on all other devices?", default: "", origin: page.origin } }) },
  prompt: { state: () => state({ dialog: { kind: "prompt", message: "What should we call this device?", default: "Laptop", origin: page.origin } }) },
  permission: { state: () => state({ questions: [{ id: "q1", kind: "permission", origin: page.origin, name: "geolocation" }] }) },
  auth: { state: () => state({ questions: [{ id: "q2", kind: "http_auth", origin: page.origin, realm: "Staff area" }] }) },
  file: { state: () => state({ questions: [{ id: "q3", kind: "file_chooser", origin: page.origin, multiple: false }] }) },
  downloads: { state: () => state({ downloads: [{ id: "d1", name: "statement-2026-10.pdf", bytes: 184_320, state: "completed" }, { id: "d2", name: "archive.zip", bytes: 48_200_000, state: "in_progress" }] }) },
};

const ago = (/** @type {number} */ min) => new Date(now() - min * 60_000).toISOString();

/** What the console is told. */
export const consoleState = () => ({
  t: "state", n: 1, now: now(),
  handoffs: [
    { id: "hof_1", version: 1, reason: "login", instruction: "Please sign in to your account. I will fetch the October statement after that.", task: "Collect October statements", site: "Northbank", session_id: "ses_1", created_at: ago(3), deadline: soon(9, 42), attempts: 1, parked: false, watched: false },
    { id: "hof_2", version: 3, reason: "captcha", instruction: "The shop asks whether you are a person.", task: "Reorder printer paper", site: "papershop.example", session_id: "ses_2", created_at: ago(64), deadline: soon(220), attempts: 2, parked: true, watched: false },
  ],
  approvals: [
    { id: "apr_1", site: "papershop.example", payee: "Paper Shop", amount: "42.80", currency: "EUR", description: "10 × printer paper A4", deadline: soon(12), page: { origin: "https://papershop.example", amount: "42.80", currency: "EUR", agrees: true } },
  ],
  sessions: [
    { id: "ses_1", driver: "owner", host: "login.northbank.example", registrable: "northbank.example", title: "Sign in — Northbank", started_at: ago(6), deadline: soon(54), provider: "local", context: "northbank", thumb: null },
    { id: "ses_3", driver: "agent", host: "docs.example.org", registrable: "example.org", title: "Release notes", started_at: ago(22), deadline: soon(38), provider: "browserbase", context: "", thumb: 3 },
    { id: "ses_4", driver: "nobody", host: "papershop.example", registrable: "papershop.example", title: "Are you a person?", started_at: ago(64), deadline: soon(30), provider: "local", context: "papershop", thumb: null },
  ],
  logins: [
    { name: "northbank", domain: "northbank.example", last_used: ago(6), last_verified: ago(9000), freshness: "stale", bytes: 18_400, in_use: true, policy: null },
    { name: "papershop", domain: "papershop.example", last_used: ago(64), last_verified: ago(70), freshness: "verified", bytes: 9_100, in_use: false, policy: { max_amount: "50.00", currency: "EUR", monthly_budget: "150.00", spent: "42.80", expires: soon(60 * 24 * 30), pending: false } },
    { name: "mail", domain: "mail.example.com", last_used: ago(3000), last_verified: null, freshness: "unverified", bytes: 22_000, in_use: false, policy: { max_amount: "20.00", currency: "EUR", monthly_budget: "", spent: "0", expires: null, pending: true } },
  ],
  history: [
    { id: "hof_0", reason: "2fa", site: "mail.example.com", status: "FINISHED", created_at: ago(190), finished_at: ago(188), finished_by: "verify", attempts: 1, verified: true, summary: "It was seen to be done, and handed back by itself.", delta: [{ field: "url", change: "/login → /inbox" }, { field: "title", change: "Sign in → Inbox" }, { field: "cookie_count", change: "4 → 7" }] },
    { id: "hof_x", reason: "captcha", site: "papershop.example", status: "TIMED_OUT", created_at: ago(1500), finished_at: ago(1470), finished_by: "time", attempts: 1, verified: null, summary: "Nobody came in time.", delta: [] },
    { id: "hof_y", reason: "login", site: "papershop.example", status: "FINISHED", created_at: ago(2900), finished_at: ago(2898), finished_by: "owner", attempts: 1, verified: null, summary: "You handed it back.", delta: [{ field: "title", change: "Log in → Your account" }, { field: "cookie_count", change: "2 → 4" }] },
  ],
  more_history: "c1",
  todos: [{ id: "tdo_1", text: "Solve the check and let the agent reorder", site: "papershop.example", created_at: ago(1470) }],
  links: [
    { id: "lnk_1", session_id: "ses_1", host: "login.northbank.example", mode: "drive", created_at: ago(3), expires_at: soon(54), claimed: true, waiting: [47], this_device: false },
    { id: "lnk_2", session_id: "ses_3", host: "docs.example.org", mode: "watch", created_at: ago(20), expires_at: soon(38), claimed: false, waiting: [], this_device: false },
  ],
  lookups: [
    { id: "crd_1", kind: "screenshot", at: ago(1), url: "https://docs.example.org/release", title: "Release notes", final_url: "https://docs.example.org/releases/42", status_code: 200, photo: true, truncated: true },
    { id: "crd_2", kind: "extract", at: ago(4), url: "https://papershop.example/a4", title: "Printer paper A4", final_url: "https://papershop.example/a4", status_code: 200, content: "Printer paper A4\n500 sheets, 80 g\n4.28 EUR\nIn stock: 120" },
    { id: "crd_3", kind: "screenshot", at: ago(9), url: "http://192.168.0.1/", error: { code: "BLOCKED_TARGET", message: "The network guard does not let pages reach that address." } },
    { id: "crd_4", kind: "extract", at: ago(12), url: "https://slow.example.net/report", retries: 2, error: { code: "NAVIGATION_TIMEOUT", message: "The page did not become usable in time." } },
  ],
  devices: [
    { id: "dev_1", name: "Chrome on Linux", kind: "console", seen_at: ago(0), this_device: true },
    { id: "dev_2", name: "Safari on iPhone", kind: "console", seen_at: ago(190), this_device: false },
  ],
  troubles: [],
});

/** The first time that somebody looks. */
export const emptyConsole = () => ({
  t: "state", n: 1, now: now(), handoffs: [], approvals: [], sessions: [], logins: [], history: [], more_history: "", todos: [], links: [],
  devices: [{ id: "dev_1", name: "Safari on iPhone", kind: "console", seen_at: ago(0), this_device: true }],
  troubles: ["The list of saved logins cannot be read: browser-contexts.yaml, line 4."],
});
