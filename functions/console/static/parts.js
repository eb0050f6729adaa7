// The components of pages: texts, times, states, tables, buttons, dialogs, problems.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor.js";
import { Watched, actsFor, clockAhead, now, session, useWatched } from "./api.js";
import { REASONS, STATES } from "./words.js";

// ---- Addresses ------------------------------------------------------------------------------------------------------

/** Returns the address of a page, with the tenant for which a provider acts. */
export function at(path, query = {}) {
  const given = Object.entries({ ...query, as: actsFor.value }).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
  return `/console${path}${asked}`;
}

export const address = new Watched(location.href);

/** Goes to an address without loading the page again. replace: adds no entry to the history, for filters. */
export function go(href, replace = false) {
  if (!replace) history.replaceState({ scrolled: scrollY }, "");
  history[replace ? "replaceState" : "pushState"](null, "", href);
  address.set(location.href);
}

window.addEventListener("popstate", (event) => {
  address.set(location.href);
  if (event.state?.scrolled) scrollBack(event.state.scrolled);
});

const SCROLL_BACK_MS = 5000;

/** Scrolls to where the reader was on a page that is only now read again, unless the reader scrolls or types first. */
function scrollBack(top) {
  const moves = ["wheel", "touchmove", "keydown", "pointerdown"];
  const grown = new ResizeObserver(() => {
    scrollTo(0, top);
    if (scrollY >= top - 1) stop();
  });
  const stop = () => {
    clearTimeout(timer);
    grown.disconnect();
    for (const move of moves) removeEventListener(move, stop);
  };
  const timer = setTimeout(stop, SCROLL_BACK_MS);
  for (const move of moves) addEventListener(move, stop);
  grown.observe(document.body);
}

/** Returns the query of the address, and a function that changes parameters of it.
 * @returns {[Record<string, string>, (members: Record<string, any>) => void]} */
export function useQuery() {
  const query = Object.fromEntries(new URL(useWatched(address)).searchParams);
  const change = (members) => {
    const { as: _, ...kept } = Object.fromEntries(new URL(location.href).searchParams);
    go(at(location.pathname.replace(/^\/console/, ""), { ...kept, ...members }) + location.hash, true);
  };
  return [query, change];
}

const TYPING_MS = 250;

/** Returns the text of a search field and a function that changes it. A moment after the last key it is the parameter
 * `search` of the address; what is typed in that moment stays.
 * @param {Record<string, string>} query
 * @param {(members: Record<string, any>) => void} change
 * @returns {[string, (text: string) => void]} */
export function useSearch(query, change) {
  const wanted = query.search ?? "";
  const [text, setText] = useState(wanted);
  const sent = useRef(wanted);
  useLayoutEffect(() => {
    if (wanted === sent.current) return;
    sent.current = wanted;
    setText(wanted);
  }, [wanted]);
  useEffect(() => {
    if (text === sent.current) return undefined;
    const timer = setTimeout(() => {
      sent.current = text;
      change({ search: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}

// ---- What this browser remembers; never a token ---------------------------------------------------------------------

export function remembered(name, fallback) {
  try {
    return JSON.parse(localStorage.getItem(`sweephand.${name}`) ?? "null") ?? fallback;
  } catch {
    return fallback;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`sweephand.${name}`, JSON.stringify(value));
  } catch {
    // A browser without storage works, too.
  }
}

// ---- Forms that somebody began --------------------------------------------------------------------------------------

/** What forms hold that were left without being sent, by the address of the form. In memory only, like the session. */
const begun = new Map();

/** Keeps the content of a form for as long as the tab lives. Returns the content, whether it was begun before, a function
 * that changes it, and one that forgets it.
 * @returns {[any, boolean, (change: (before: any) => any) => void, () => void]} */
export function useBegun(first) {
  const [place] = useState(() => `${location.pathname}${location.search}`);
  const [before] = useState(() => begun.get(place));
  const [content, setContent] = useState(before ?? first);
  const change = (changed) => setContent((content_) => {
    begun.set(place, changed(content_));
    return begun.get(place);
  });
  return [content, before !== undefined, change, () => begun.delete(place)];
}

window.addEventListener("beforeunload", (event) => begun.size && event.preventDefault());
session.watchers.add((mine) => mine || begun.clear());

// ---- Texts of other people -------------------------------------------------------------------------------------------

/** A joiner between two emoji, as in a family, is part of one of them. */
const UNSEEN = /(?!(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic}))[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufeff\ufff9-\ufffb]/gu;
const CUT = 120;

/** Returns the text with the code points of characters that are invisible or change the direction of a line. */
export function visible(text) {
  return String(text).replace(UNSEEN, (found) => `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Shows a text of another person: isolated, invisible characters as code points, cut with a button for more. */
export function Text({ children, cut = CUT }) {
  const [whole, setWhole] = useState(false);
  const letters = [...visible(children ?? "")];
  if (letters.length <= cut) return html`<bdi>${letters.join("")}</bdi>`;
  return html`<bdi>${whole ? letters.join("") : letters.slice(0, cut - 1).join("") + "…"}</bdi>${" "}
    <button type="button" class="quiet" aria-expanded=${whole} onClick=${(event) => { event.preventDefault(); event.stopPropagation(); setWhole(!whole); }}>
      ${whole ? "Show less" : `Show all ${letters.length} characters`}</button>`;
}

/** Shows JSON or a plain string unchanged. */
export function Source({ value }) {
  const [whole, setWhole] = useState(false);
  const text = visible2(typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const long = text.length > 2000;
  return html`<div class="source"><pre tabindex="0"><bdi>${long && !whole ? `${text.slice(0, 2000)}…` : text}</bdi></pre>
    ${long && html`<button type="button" class="quiet" onClick=${() => setWhole(!whole)}>${whole ? "Show less" : `Show all ${text.length} characters`}</button>`}</div>`;
}

function visible2(text) {
  return text.split("\n").map(visible).join("\n");
}

// ---- Times ----------------------------------------------------------------------------------------------------------

export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
/** The zone in which times are shown and read: the viewer's, or UTC. */
export const zone = new Watched(remembered("zone", ownZone) === "UTC" ? "UTC" : ownZone);

export function zoneName(name = zone.value) {
  return name.split("/").at(-1).replace(/_/g, " ");
}

const formats = new Map();

function format(timeZone, options) {
  const key = timeZone + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...options }));
  return formats.get(key);
}

const DAY = { year: "numeric", month: "short", day: "2-digit" };
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

export const clock = (ms, seconds = true, timeZone = zone.value) => format(timeZone, { ...CLOCK, ...(seconds ? {} : { second: undefined }) }).format(ms);
export const day = (ms, timeZone = zone.value) => format(timeZone, { weekday: "short", ...DAY }).format(ms);
export const dayKey = (ms, timeZone = zone.value) => format(timeZone, { year: "numeric", month: "2-digit", day: "2-digit" }).format(ms).split("/").reverse().join("-");

/** Returns a duration in words: "45 s", "2 min", "3 h", "5 days". */
export function length(ms) {
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(size)} ms`;
  if (size < 9950) return `${(size / 1000).toFixed(1)} s`;
  if (size < 99500) return `${Math.round(size / 1000)} s`;
  if (size < 90 * 60e3) return `${Math.round(size / 60e3)} min`;
  if (size < 36 * 3600e3) return `${Math.round(size / 3600e3)} h`;
  return `${Math.round(size / 86400e3)} days`;
}

/** Returns how far away an instant is: "in 3 min", "2 h ago". */
export function distance(ms) {
  const away = ms - now();
  if (Math.abs(away) < 1500) return "now";
  return away > 0 ? `in ${length(away)}` : `${length(away)} ago`;
}

const minute = new Watched(0);
setInterval(() => document.hidden || minute.set(minute.value + 1), 10000);

/** Shows an instant: its date unless it is today, its time, and how far away it is. Its title has the zone and UTC. */
export function When({ at: text, far = true, seconds = true }) {
  const shown = useWatched(zone);
  useWatched(minute);
  useWatched(clockAhead);
  if (!text) return html`<span class="faint">–</span>`;
  const ms = Date.parse(text);
  const date = dayKey(ms, shown) === dayKey(now(), shown) ? "" : `${day(ms, shown).replace(/ \d{4}$/, new Date(ms).getUTCFullYear() === new Date(now()).getUTCFullYear() ? "" : "$&")} `;
  return html`<time datetime=${text} title=${`${day(ms, shown)} ${clock(ms, true, shown)} ${zoneName(shown)} = ${new Date(ms).toISOString()}`}>
    ${date}${clock(ms, seconds, shown)}${far && html`${" "}<span class="faint">${distance(ms)}</span>`}</time>`;
}

// ---- States: colour, shape and word ---------------------------------------------------------------------------------

const GROUP = {
  SUCCESS: "ok", DONE: "ok", RESOLVED: "ok",
  ERROR: "failed", REQUEST_ERROR: "failed", UNKNOWN: "failed", TIMEOUT: "failed", FAILED: "failed", FAULTED: "failed", BROKEN: "failed", OPEN: "failed",
  SKIPPED: "skipped", CANCELLED: "skipped", PAUSED: "paused", AWAY: "paused", LIVE: "live", INACTIVE: "off", DISABLED: "off", ARCHIVED: "off",
  MISSED: "missed", EXPIRED: "missed",
  SCHEDULED: "planned", ACTIVE: "live", ENABLED: "live", COMPLETED: "over", ENDING: "over", DELETING: "over", PURGING: "over",
};
const SHAPES = {
  ok: html`<circle cx="6" cy="6" r="4.5" />`,
  failed: html`<path d="M2.5 2.5l7 7m0-7l-7 7" class="line" />`,
  skipped: html`<path d="M2 4.2h8M2 7.8h8" class="line" />`,
  paused: html`<path d="M4 2.5v7m4-7v7" class="line" />`,
  missed: html`<path d="M6 1.2L10.8 6 6 10.8 1.2 6z" class="hollow" />`,
  planned: html`<circle cx="6" cy="6" r="4" class="hollow" />`,
  due: html`<circle cx="6" cy="6" r="4" class="hollow" />`,
  running: html`<path d="M6 1.5a4.5 4.5 0 1 1-4.5 4.5" class="line" />`,
  live: html`<circle cx="6" cy="6" r="3" />`,
  off: html`<path d="M2 6h8" class="line" />`,
  over: html`<path d="M2 6.5l3 3 5-7" class="line" />`,
};
const WORDS = {
  SUCCESS: "Succeeded", ERROR: "Failed", REQUEST_ERROR: "Request failed", UNKNOWN: "Unknown", TIMEOUT: "Timed out",
  SKIPPED: "Skipped", MISSED: "Missed", EXPIRED: "Expired", CANCELLED: "Cancelled", SCHEDULED: "Planned",
  TRIGGERED: "Running", ACK_RECVD: "Awaits result", ACK_NOT_RECVD: "Awaits result", RETRY_WAIT: "Retries", HELD: "Held", QUEUED: "Queued",
};

export const stateWord = (state) => WORDS[state] ?? state.charAt(0) + state.slice(1).toLowerCase().replace(/_/g, " ");
export const stateGroup = (state) => GROUP[state] ?? "running";

export function Shape({ group }) {
  return html`<svg class=${`shape ${group}`} viewBox="0 0 12 12" aria-hidden="true">${SHAPES[group]}</svg>`;
}

/** Shows a state by colour, shape and word. */
export function State({ state, reason }) {
  const group = stateGroup(state);
  return html`<span class=${`state ${group}`} title=${STATES[state] ?? ""}><${Shape} group=${group} />${stateWord(state)}${reason && reason !== "ON_TIME" ? html`<span class="faint reason" title=${REASONS[reason] ?? ""}>${reasonWord(reason)}</span>` : ""}</span>`;
}

export const reasonWord = (reason) => reason.toLowerCase().replace(/_/g, " ").replace(/\b(http|dns|tls)\b/g, (found) => found.toUpperCase());

// ---- Pages ----------------------------------------------------------------------------------------------------------

let leftFrom = /** @type {Element | null} */ (null);

/** Notes where the focus is while somebody leaves for another page. */
export function leave() {
  leftFrom = document.activeElement;
}

/** Focuses the heading of a page that has just appeared, unless somebody has moved the focus in the meantime. */
function focusHeading() {
  if ([leftFrom, document.body, null].includes(document.activeElement)) focusOn("main h1");
}

/** Sets the title of the tab and shows the head of a page: a link back, the title, and buttons. */
export function Head({ title, plain, back, children, lead }) {
  useLayoutEffect(() => {
    document.title = `${plain ?? title} · ${document.body.dataset.tenant ?? "Sweephand"}`;
  }, [plain ?? title]);
  useLayoutEffect(focusHeading, []);
  return html`<header class="head">
    <div class="title">${back && html`<p class="back"><a href=${back[1]}>${back[0]}</a></p>`}
      <h1 tabindex="-1">${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
    <div class="actions">${children}</div></header>`;
}

/** Shows what a request came to where it is not data: nothing yet, a refusal, or that what is shown is old. page: it is
 * the whole page, which has no heading without it. missing: a further sentence for what is not there. */
export function Loaded({ answer, children, what = "this", page = false, missing = "" }) {
  useWatched(minute);
  const { data, problem, at: when, reload } = answer;
  if (data === null && !problem) return html`<p class="waiting" role="status">Reading ${what} …</p>`;
  if (data === null && problem.status === 404) return html`<${NotThere}>${missing}<//>`;
  return html`${problem && data !== null && html`<p class="old" role="status">As of ${clock(when)} (${distance(when)}): ${problem.detail} <button type="button" class="quiet" onClick=${reload}>Try again</button></p>`}
    ${data === null ? html`${page && html`<${Head} title=${problem.status === 403 ? "Not allowed" : problem.status ? "Not read" : "No answer"} />`}<${ProblemNote} problem=${problem} again=${reload} />` : html`<div class=${problem ? "aged" : ""}>${children}</div>`}`;
}

export function NotThere({ children }) {
  useLayoutEffect(() => {
    document.title = "Not there · Sweephand";
    focusHeading();
  }, []);
  return html`<section class="empty"><h1 tabindex="-1">Not there</h1><p>There is nothing at this address, or nothing that you may see.${children ? ` ${children}` : ""}</p>
    <p><a class="button" href=${at("/overview")}>Go to the overview</a></p></section>`;
}

const TITLES = { 401: "Not signed in", 403: "Not allowed", 429: "Too many requests", 503: "Not available" };

/** Returns a problem's title, or a plain one if another part of the way answered instead of the API. */
function titleOf(problem) {
  return problem.title ?? (problem.status ? TITLES[problem.status] ?? "The request failed" : "No answer");
}

/** Shows the API's message under its title, its code, and when to try again. */
export function ProblemNote({ problem, again }) {
  if (!problem) return null;
  const stop = /[.!?…]$/.test(problem.detail.trim()) ? "" : ".";
  const scope = problem.code === "SCOPE_MISSING" ? " Ask for this scope, or sign in with another credential." : "";
  const wait = problem.retryAfter ? ` Try again in ${length(problem.retryAfter * 1000)}.` : "";
  return html`<div class="problem" role="alert"><strong>${titleOf(problem)}</strong>
    <span><${Text} cut=${600}>${problem.detail}<//>${scope || wait ? stop : ""}${scope}${wait}</span> ${problem.status > 0 && html`<code>${/^\d+$/.test(problem.code) ? `HTTP ${problem.code}` : problem.code}</code>`}
    ${problem.errors.length > 1 && html`<ul>${problem.errors.map((each) => html`<li><code>${each.field}</code> <${Text} cut=${400}>${each.reason}<//></li>`)}</ul>`}
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}</div>`;
}

export function Empty({ title, children }) {
  return html`<section class="empty"><h2>${title}</h2>${children}</section>`;
}

/** Shows rows by columns: [title, cell(row), class]. On a phone each row is a card, whose cells have the titles; the roles
 * say that it is a table still. href: the page of a row, opened by Enter and a click anywhere. */
export function Table({ label, columns, rows, keyOf, href }) {
  const body = useRef(null);
  const onKey = (event) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("tr");
    if (!step || !row || event.target.closest("input,select,textarea") || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    const links = [...body.current.querySelectorAll("tr")];
    links[links.indexOf(row) + step]?.querySelector("a")?.focus();
  };
  const onClick = (event) => {
    if (event.target.closest("a,button,input,select,summary,label") || getSelection()?.toString()) return;
    event.target.closest("tr")?.querySelector("a")?.click();
  };
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0"><table class="rows" role="table">
    <thead role="rowgroup"><tr role="row">${columns.map(([title, , kind]) => html`<th scope="col" role="columnheader" class=${kind}>${title}</th>`)}</tr></thead>
    <tbody ref=${body} role="rowgroup" class=${href ? "links" : ""} onKeyDown=${onKey} onClick=${href ? onClick : null}>${rows.map((row) => html`<tr key=${keyOf(row)} role="row">
      ${columns.map(([title, cell, kind]) => html`<td role="cell" class=${kind} data-title=${title}>${cell(row)}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** Offers rows that are newer than the list. They wait, so that nothing moves while somebody reads. */
export function News({ list, noun }) {
  const show = ({ currentTarget }) => {
    const table = currentTarget.closest(".news").nextElementSibling;
    list.show();
    setTimeout(() => table.querySelector("tbody a")?.focus());
  };
  return html`<p class="news" role="status">${list.news > 0 && html`<button type="button" onClick=${show}>Show ${count(list.news, `new ${noun}`)}</button>`}</p>`;
}

export function More({ list }) {
  return list.more && html`<p class="more"><${Action} act=${list.more}>Show more<//></p>`;
}

/** Shows names and values. Values that are null or undefined are left out. */
export function Facts({ items }) {
  const shown = items.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Shows parts of a page as tabs, whose names are in the address after #. tabs: [name, title, component]. */
export function Tabs({ tabs, label }) {
  const named = new URL(useWatched(address)).hash.slice(1);
  const chosen = tabs.find(([name]) => name === named) ?? tabs[0];
  return html`<nav class="tabs" aria-label=${label}>${tabs.map(([name, title]) => html`<a href=${`${location.pathname}${location.search}#${name}`} aria-current=${name === chosen[0] ? "page" : null}>${title}</a>`)}</nav>
    <section class="tab">${chosen[2]()}</section>`;
}

/** Shows a choice as buttons, one of which is pressed. */
export function Chips({ label, options, value, onChange }) {
  return html`<div class="chips" role="group" aria-label=${label}>${options.map(([name, title]) => html`<button type="button" aria-pressed=${(value ?? "") === name} onClick=${() => onChange(name)}>${title}</button>`)}</div>`;
}

// ---- Doing something ------------------------------------------------------------------------------------------------

/** A line that says what was done, with a button to undo it. */
export const notice = new Watched(null);

/** Opens a list of links or buttons below its title. It closes with Esc, or once the focus or a click is elsewhere. */
export function Menu({ title, label, current = null, children }) {
  const ref = useRef(null);
  useEffect(() => {
    const outside = ({ target }) => {
      if (ref.current && !ref.current.contains(target)) ref.current.open = false;
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, []);
  const close = () => {
    ref.current.open = false;
    ref.current.firstElementChild.focus(); // where a dialog that a button opens gives the focus back
  };
  return html`<details class="menu" ref=${ref} onKeyDown=${(event) => event.key === "Escape" && close()}>
    <summary aria-label=${label} aria-current=${current}>${title}</summary>
    <div onClick=${(event) => event.target.closest("button") && close()}>${children}</div></details>`;
}

export function tell(text, undo) {
  const made = { text, undo };
  notice.set(made);
  setTimeout(() => notice.value === made && notice.set(null), 10000);
}

/** Focuses the heading if the element that had the focus is gone: a button that what it did has replaced. */
function focusHeadingIfLost() {
  if (document.activeElement === document.body) focusOn("main h1");
}

/** Keeps an action to one call at a time: `once` calls it, `problem` is the Problem that it threw, to be shown. */
export function useOnce(act) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const acting = useRef(false);
  const once = async (...given) => {
    if (acting.current) return;
    acting.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await act(...given);
    } catch (thrown) {
      if (thrown?.status === undefined) throw thrown;
      setProblem(thrown);
    } finally {
      acting.current = false;
      setBusy(false);
      setTimeout(focusHeadingIfLost);
    }
  };
  return { once, busy, problem };
}

/** Shows a button for an action. An error appears next to it, and the button can be pressed again. Give it a key where
 * another action may take its place: otherwise the focus, and the error, go over to the other one. */
export function Action({ children, act, kind = "", disabled, title }) {
  const { once, busy, problem } = useOnce(act);
  return html`<span class="action"><button type="button" class=${kind} title=${title} disabled=${disabled} aria-busy=${busy} onClick=${() => once()}>${children}</button>
    ${problem && html`<${ProblemNote} problem=${problem} />`}</span>`;
}

/** Returns a word that a POSIX shell takes as it is, whatever it contains. */
export function shellWord(text) {
  return `'${String(text).replaceAll("'", "'\\''")}'`;
}

/** Copies a text. Throws a Problem where the browser does not let a page do so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw { status: 0, code: "NOT_COPIED", title: "Not copied", detail: "This browser does not let the page copy. Select the text and copy it yourself.", errors: [], retryAfter: null };
  }
}

/** Focuses the first element that a selector finds, if there is one. */
export function focusOn(selector) {
  const found = document.querySelector(selector);
  if (found instanceof HTMLElement) found.focus({ preventScroll: true });
}

/** Shows a dialog over the page. Esc or Cancel closes it, and the focus returns to where it was. onClose: null if only a
 * button of the dialog closes it. */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      // While it is open, nothing else on the page takes the focus. The element that opened it may no longer exist.
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      else focusOn("main h1");
    };
  }, []);
  // A browser closes a dialog at the second Esc in a row, whatever the page says at the first.
  const closed = () => {
    if (ref.current && onClose) onClose();
    else ref.current?.showModal();
  };
  return html`<dialog ref=${ref} aria-label=${title} onClose=${closed} onCancel=${(event) => { event.preventDefault(); onClose?.(); }}>
    <h2>${title}</h2>${children}</dialog>`;
}

/** Asks for confirmation before an action on many resources, with their number. count: asks the API. act: does it.
 * danger: it cannot be undone. */
export function Confirm({ title, consequence, count, word, act, onClose, children, danger = false }) {
  const [number, setNumber] = useState(count ? null : 1);
  const [problem, setProblem] = useState(null);
  const ask = async () => {
    setProblem(null);
    setNumber(null);
    try {
      setNumber(await count());
    } catch (thrown) {
      setProblem(thrown);
    }
  };
  useEffect(() => {
    if (count) ask();
  }, []);
  // The page below is read on: what was read when somebody opened the dialog stays until the answer.
  const said = useMemo(() => consequence(number), [number]);
  const yes = useMemo(() => (number === null ? "Counting …" : word(number)), [number]);
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${said}</p>${children}
    ${problem && html`<${ProblemNote} problem=${problem} again=${ask} />`}
    <p class="actions"><${Action} kind=${danger ? "primary danger" : "primary"} disabled=${!number} act=${async () => {
      await act(number);
      onClose();
    }}>${yes}<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

/** Returns how many messages of runs wait in the queues, by an answer of `/v1/health`. */
export const backlogOf = ({ backlog }) => count(Object.values(backlog).reduce((sum, each) => sum + each.ready, 0), "message");

/** Returns "1 job", "3 jobs". */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** Shows a field with its label, a hint, and the API's message about it. problem: of the request; name: the member. */
export function Field({ label, hint, problem, name, children }) {
  const said = saidOf(problem, name);
  return html`<div class=${`field ${said.length ? "wrong" : ""}`}><label><span class="label">${label}</span>${children}</label>
    ${hint && html`<p class="hint">${hint}</p>`}
    <${Said} problem=${problem} name=${name} /></div>`;
}

const saidOf = (problem, name) => (problem?.errors ?? []).filter(({ field }) => field === name || field?.startsWith(`${name}.`) || field?.startsWith(`${name}[`));

/** Shows the API's messages about a member. */
export function Said({ problem, name }) {
  return saidOf(problem, name).map((each) => html`<p class="said" role="alert"><${Text} cut=${400}>${each.reason}<//>${each.position !== undefined && each.position !== null ? ` (at character ${each.position + 1})` : ""}</p>`);
}
