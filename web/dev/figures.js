// @ts-check
// Canned figures for the console. For tests and screenshots only.

const spread = (/** @type {number} */ count, /** @type {number} */ median_s, /** @type {number} */ p90_s) => ({ count, median_s, p90_s });

/** @param {number[]} ends unblocked, expired, aborted, abandoned, lost, running @param {number} [human] @param {number} [done] */
function handoffs([unblocked, expired, aborted, abandoned, lost, running], human = 0, done = 0) {
  const ended = unblocked + expired + aborted + abandoned + lost;
  return {
    asked: ended + running, running, ended, unblocked, expired, aborted, abandoned, lost, unblock_rate: ended ? unblocked / ended : null,
    time_to_human: spread(human ? ended - expired : 0, human, human * 5), time_to_done: spread(done ? unblocked : 0, done, done * 4),
  };
}

/** @param {number} days */
const calendar = (days) => Array.from({ length: days }, (_, i) => new Date(Date.now() - (days - 1 - i) * 864e5).toISOString().slice(0, 10));

/** @param {number} days */
export function figures(days) {
  const dates = calendar(days);
  return {
    t: "figures", days, kept_days: days, from: dates[0], to: dates[days - 1], counting: false, takeovers: 3,
    handoffs: handoffs([29, 4, 1, 2, 1, 1], 74, 192),
    reasons: [
      { reason: "login", ...handoffs([14, 1, 1, 0, 1, 1], 62, 168) }, { reason: "2fa", ...handoffs([9, 0, 0, 0, 0, 0], 38, 71) },
      { reason: "captcha", ...handoffs([5, 3, 0, 1, 0, 0], 410, 780) }, { reason: "manual_recovery", ...handoffs([1, 0, 0, 1, 0, 0], 95, 340) },
    ],
    per_day: dates.map((day, i) => { const asked = [1, 0, 2, 3, 0, 1, 0, 0, 2, 1, 4, 0, 1][(i * 5 + 3) % 13]; return { day, asked, unblocked: Math.max(0, asked - (i % 4 === 0 ? 1 : 0)) }; }),
    sites: [
      { site: "northbank.example", ...handoffs([16, 0, 1, 0, 0, 1], 55, 120), reasons: [{ reason: "2fa", count: 9 }, { reason: "login", count: 9 }], advice: "The saved login lasts about 3 days here." },
      { site: "papershop.example", ...handoffs([6, 3, 0, 1, 0, 0], 390, 700), reasons: [{ reason: "captcha", count: 9 }, { reason: "manual_recovery", count: 1 }], advice: "" },
      { site: "mail.example.com", ...handoffs([6, 0, 0, 0, 0, 0], 70, 150), reasons: [{ reason: "login", count: 6 }], advice: "A saved login could have avoided 5 of 6." },
      { site: "a-rather-long-name-of-a-shop-for-garden-furniture.example", ...handoffs([1, 1, 0, 1, 1, 0], 80, 900), reasons: [{ reason: "login", count: 3 }, { reason: "manual_recovery", count: 1 }], advice: "" },
    ],
    more_sites: 4,
    logins: [
      { site: "northbank.example", logins: 1, stale: 1, ended: 6, median_s: 263_000, shortest_s: 90_000, longest_s: 612_000 },
      { site: "papershop.example", logins: 2, stale: 0, ended: 1, median_s: 1_900_000, shortest_s: 1_900_000, longest_s: 1_900_000, alive_since: new Date(Date.now() - 12 * 864e5).toISOString() },
      { site: "example.org", logins: 1, stale: 0, ended: 0, median_s: 0, shortest_s: 0, longest_s: 0, alive_since: new Date(Date.now() - 41 * 864e5).toISOString() },
    ],
    approvals: { asked: 12, open: 1, approved_by_owner: 5, approved_by_policy: 4, denied: 1, expired: 1, unused: 1, paid: [{ amount: "142.80", currency: "EUR", payments: 6 }, { amount: "5000", currency: "JPY", payments: 1 }], uncertain: [{ amount: "19.90", currency: "USD", payments: 1 }] },
    cost: [{ month: dates[days - 1].slice(0, 7), minutes: 214, cap_minutes: 600, providers: [{ provider: "browserbase", sessions: 18, seconds: 12_800 }] }, { month: "2026-01", minutes: 380, providers: [{ provider: "browserbase", sessions: 31, seconds: 22_790 }] }],
  };
}

/** Before anybody was asked. @param {number} days */
export function noFigures(days) {
  const dates = calendar(days);
  return {
    t: "figures", days, kept_days: days, from: dates[0], to: dates[days - 1], counting: false, takeovers: 0, handoffs: handoffs([0, 0, 0, 0, 0, 0]), reasons: [], sites: [], logins: [],
    per_day: dates.map((day) => ({ day, asked: 0, unblocked: 0 })), approvals: { asked: 0, open: 0, approved_by_owner: 0, approved_by_policy: 0, denied: 0, expired: 0, unused: 0, paid: [], uncertain: [] },
    cost: [{ month: dates[days - 1].slice(0, 7), minutes: 0, providers: [] }],
  };
}
