// Access to the API: the session, requests, the service's clock, and answers that a page keeps fresh.

import { useEffect, useRef, useState } from "./vendor.js";

/** @typedef {{token: string, clientId: string, tenant: string | null, scopes: string[] | null}} Session
 * token: kept in memory only. tenant: null for the provider. scopes: null if the issuer's token does not say them. */
/** @typedef {{status: number, code: string, title?: string, detail: string, errors: {field: string, reason: string, position?: number}[],
 * retryAfter: number | null}} Problem */

/** A value that components watch. */
export class Watched {
  /** @param {any} value */
  constructor(value) {
    this.value = value;
    this.watchers = new Set();
  }

  set(value) {
    if (value === this.value) return;
    this.value = value;
    for (const watcher of [...this.watchers]) watcher(value);
  }
}

/** Returns the current value of a Watched, and renders the component again when it changes. */
export function useWatched(watched) {
  const [, draw] = useState(0);
  useEffect(() => {
    const watcher = () => draw((count) => count + 1);
    watched.watchers.add(watcher);
    watcher();
    return () => watched.watchers.delete(watcher);
  }, [watched]);
  return watched.value;
}

// ---- Who is signed in -----------------------------------------------------------------------------------------------

/** @type {Watched} null: nobody is signed in. */
export const session = new Watched(null);
/** True while a request waits for a new sign-in; the page stays as it is. */
export const askedAgain = new Watched(false);
/** The tenant for which a provider acts, from the address; null for the provider's own data. */
export const actsFor = new Watched(null);
/** Hands the session to new tabs of this browser, and ends it in all of them. */
const tabs = new BroadcastChannel("sweephand-console");
const waiting = [];
const SIGNED_OUT = { status: 401, code: "SIGNED_OUT", title: "Signed out", detail: "You signed out before this was sent.", errors: [], retryAfter: null };

tabs.onmessage = ({ data }) => {
  if (data.kind === "anyone" && session.value) tabs.postMessage({ kind: "session", session: session.value });
  const wanted = !session.value || (askedAgain.value && session.value.clientId === data.session?.clientId);
  if (data.kind === "session" && wanted) signedIn(data.session, false);
  if (data.kind === "over") over();
};

/** Asks the other tabs for their session. Returns after a moment, even if none answers. */
export function askOtherTabs() {
  tabs.postMessage({ kind: "anyone" });
  return new Promise((done) => setTimeout(done, 120));
}

/** @param {Session} made */
export function signedIn(made, tell = true) {
  session.set(made);
  askedAgain.set(false);
  if (tell) tabs.postMessage({ kind: "session", session: made });
  for (const { goOn } of waiting.splice(0)) goOn();
}

/** Ends the session in every tab of this browser. */
export function signOut() {
  tabs.postMessage({ kind: "over" });
  over();
}

function over() {
  session.set(null);
  askedAgain.set(false);
  for (const { end } of waiting.splice(0)) end(SIGNED_OUT);
}

/** Returns whether the session has a scope; true if its token does not say. */
export function may(...scopes) {
  const mine = session.value?.scopes;
  return !mine || scopes.some((scope) => mine.includes(scope) || mine.includes("provider:*"));
}

export function isProvider() {
  return Boolean(session.value) && session.value.tenant === null && session.value.scopes !== null;
}

/** Signs in with a credential. Throws a Problem. */
export async function signInWith(clientId, secret) {
  const before = session.value;
  const body = new URLSearchParams({ grant_type: "client_credentials", client_id: clientId, client_secret: secret });
  const answer = await sent("POST", "/oauth/token", { body, headers: {} });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw problemOf(answer, { detail: told.error_description || "The client id or the secret is wrong." });
  const made = sessionOf(told, clientId);
  // The page and the requests that wait are those of the tenant before.
  if (before?.scopes && before.tenant !== made.tenant) {
    throw { status: 403, code: "OTHER_TENANT", title: "Another tenant", detail: `This page belongs to ${before.tenant ?? "the provider"}, and this credential does not. To leave the page, sign out.`, errors: [], retryAfter: null };
  }
  signedIn(made);
}

/** Returns the session of a token. clientId: of the credential, if the stack itself gave the token.
 * @returns {Session} */
export function sessionOf(told, clientId = null) {
  const claims = claimsOf(told.access_token);
  return {
    token: told.access_token,
    clientId: clientId ?? claims.email ?? claims.sub ?? "",
    tenant: claims.tenant ?? null,
    scopes: clientId === null ? null : told.scope.split(" "),
  };
}

function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return {};
  }
}

// ---- The service's clock --------------------------------------------------------------------------------------------

/** Milliseconds by which the service's clock is ahead of the browser's; 0 until the first answer. */
export const clockAhead = new Watched(0);

/** Returns the service's time in milliseconds. */
export function now() {
  return Date.now() + clockAhead.value;
}

function readClock(answer) {
  const date = Date.parse(answer.headers.get("date") ?? "");
  if (Number.isNaN(date)) return;
  const ahead = date + 500 - Date.now();
  if (Math.abs(ahead - clockAhead.value) > 2000) clockAhead.set(Math.abs(ahead) > 2000 ? ahead : 0);
}

// ---- Requests -------------------------------------------------------------------------------------------------------

const SLOW_MS = 20000;

/** When the API last answered, and how many requests have failed since. */
export const freshness = new Watched({ at: 0, failures: 0 });

/** @param {{body?: any, headers: Record<string, string>, signal?: AbortSignal}} more */
async function sent(method, path, more) {
  const { body, headers, signal } = more;
  const limit = AbortSignal.timeout(SLOW_MS);
  try {
    // So that the browser never opens its own dialog for a password.
    const answer = await fetch(path, { method, body, headers, cache: "no-store", credentials: "omit", signal: signal ? AbortSignal.any([signal, limit]) : limit });
    readClock(answer);
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw { status: 0, code: "NO_ANSWER", detail: "The API does not answer.", errors: [], retryAfter: null };
  }
}

/** Sends a request and returns {status, body, etag}. Throws a Problem. After a 401, asks to sign in again and repeats it.
 * @param {{body?: any, ifMatch?: string | null, type?: string, signal?: AbortSignal, key?: string}} [more] */
export async function request(method, path, more = {}) {
  for (;;) {
    // Whoever signs in after a sign-out may be somebody else.
    if (!session.value) throw SIGNED_OUT;
    const used = session.value.token;
    const headers = { Authorization: `Bearer ${used}` };
    if (actsFor.value && session.value.tenant === null && !path.startsWith("/v1/tenants") && path !== "/v1/health") headers["Sweephand-Tenant"] = actsFor.value;
    if (more.body !== undefined) headers["Content-Type"] = more.type ?? "application/json";
    if (more.ifMatch) headers["If-Match"] = more.ifMatch;
    if (more.key) headers["Idempotency-Key"] = more.key;
    const answer = await sent(method, path, {
      headers, signal: more.signal, body: more.body === undefined ? undefined : JSON.stringify(more.body),
    });
    if (answer.status === 401) {
      if (session.value?.token === used) await signInAgain();
      continue;
    }
    const text = await answer.text();
    const told = parsed(text);
    if (!answer.ok) throw problemOf(answer, told);
    if (text && told === null && !path.startsWith("/v1/runs:export")) {
      throw { status: 0, code: "NO_ANSWER", detail: "Something else answered instead of the API: a proxy, or the sign-in page of a network.", errors: [], retryAfter: null };
    }
    return { status: answer.status, body: told, etag: answer.headers.get("etag"), text };
  }
}

function signInAgain() {
  askedAgain.set(true);
  return new Promise((goOn, end) => waiting.push({ goOn, end }));
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** @returns {Problem} */
function problemOf(answer, told) {
  const wait = Number(answer.headers.get("retry-after"));
  const plain = { 429: "Too many requests.", 503: "The service is not available at the moment." };
  return {
    status: answer.status,
    code: told?.code ?? String(answer.status),
    title: told?.title,
    detail: told?.detail ?? told?.message ?? plain[answer.status] ?? `The API answered ${answer.status}.`,
    errors: told?.errors ?? [],
    retryAfter: wait > 0 ? wait : answer.status === 429 ? 60 : null,
  };
}

/** Returns a path with a query; members that are null, undefined or empty are left out. */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : path;
}

// ---- Answers that a page keeps fresh --------------------------------------------------------------------------------

const LONGEST_S = 300;
const FIRST_AGAIN_S = 10;
/** What is not there may be about to come: the group of a run that has just failed. */
const SOON_S = 2;

/** Keeps the answer of a GET fresh: every so many seconds, never while the tab is hidden, at once on return. After a
 * failure it asks again soon, and half as often after each further one. What one tenant was answered is not shown to the
 * next that a provider acts for.
 * @param {string | null} path null: no request yet
 * @param {number} [everyS] the interval; 0: only once
 * @returns {{data: any, etag: string | null, problem: Problem | null, at: number, reload: () => Promise<void>}} */
export function useAnswer(path, everyS = 0) {
  const tenant = useWatched(actsFor);
  const key = `${tenant} ${path}`;
  const [state, setState] = useState({ key, data: null, etag: null, problem: null, at: 0 });
  const load = useRef(async () => {});
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    let timer = 0;
    let pauseS = everyS;
    let failed = false;
    let asked = 0;
    let answered = 0;
    const ask = async () => {
      clearTimeout(timer);
      const mine = (asked += 1);
      // An answer that comes after that of a later request is older than what is shown.
      const late = () => stop.signal.aborted || mine < answered;
      try {
        const { body, etag } = await request("GET", path, { signal: stop.signal });
        if (late()) return;
        answered = mine;
        pauseS = everyS;
        failed = false;
        setState({ key, data: body, etag, problem: null, at: now() });
        freshness.set({ at: now(), failures: 0 });
      } catch (problem) {
        if (late()) return;
        pauseS = failed ? Math.min(LONGEST_S, pauseS * 2) : problem.status === 404 ? SOON_S : Math.min(FIRST_AGAIN_S, Math.max(5, everyS * 2));
        failed = true;
        setState((before) => ({ ...(before.key === key ? before : { data: null, etag: null, at: 0 }), key, problem }));
        if (problem.status === 0) freshness.set({ at: freshness.value.at, failures: freshness.value.failures + 1 });
      }
      plan();
    };
    const plan = () => {
      clearTimeout(timer);
      if (pauseS && !document.hidden && !stop.signal.aborted) timer = setTimeout(ask, pauseS * 1000);
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : pauseS ? ask() : undefined);
    load.current = ask;
    document.addEventListener("visibilitychange", seen);
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, everyS]);
  const current = state.key === key ? state : { data: null, etag: null, problem: null, at: 0 };
  return { ...current, reload: () => load.current() };
}

/** Keeps a list that grows by its cursor: {items, more, next, problem, ...}. Its first page is kept fresh.
 * @param {((row: any) => string) | null} [keyOf] if given, rows keep their places when the list is read again, and new
 * ones wait: `news` counts them, `show` adds them. */
export function useList(path, everyS = 0, keyOf = null) {
  const first = useAnswer(path, everyS);
  const key = `${useWatched(actsFor)} ${path}`;
  const [rest, setRest] = useState({ key, items: [], cursor: undefined, problem: null });
  const [, draw] = useState(0);
  const held = useRef({ key: "", data: null, items: null, news: 0, letIn: true });
  const mine = rest.key === key ? rest : { items: [], cursor: undefined, problem: null };
  const cursor = mine.cursor === undefined ? first.data?.nextCursor : mine.cursor;
  if (first.data && first.data !== held.current.data) held.current = read(held.current, key, first.data, keyOf);
  const show = () => {
    held.current = { ...held.current, items: first.data.items, news: 0 };
    draw((count) => count + 1);
  };
  const more = async () => {
    try {
      const { body } = await request("GET", `${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`);
      setRest({ key, items: [...mine.items, ...body.items], cursor: body.nextCursor, problem: null });
    } catch (problem) {
      setRest({ ...mine, key, problem });
    }
  };
  const reload = () => {
    held.current.letIn = true;
    setRest({ key, items: [], cursor: undefined, problem: null });
    return first.reload();
  };
  const items = first.data && [...held.current.items, ...unknown(mine.items, held.current.items, keyOf)];
  return { ...first, reload, show, news: held.current.news, problem: first.problem ?? mine.problem, items, more: cursor ? more : null };
}

/** Returns the rows to show after a page was read again: known rows in their places, new ones only counted. */
function read(before, key, data, keyOf) {
  if (!keyOf || before.key !== key || before.letIn) return { key, data, items: data.items, news: 0, letIn: false };
  const fresh = new Map(data.items.map((row) => [keyOf(row), row]));
  // A missing row is on the next page if no row after it is there any more; otherwise it is gone.
  const last = data.nextCursor ? before.items.findLastIndex((row) => fresh.has(keyOf(row))) : Infinity;
  const items = before.items.map((row, place) => fresh.get(keyOf(row)) ?? (place > last ? row : null)).filter(Boolean);
  return { ...before, data, items, news: unknown(data.items, before.items, keyOf).length };
}

function unknown(rows, known, keyOf) {
  if (!keyOf) return rows;
  const keys = new Set(known.map(keyOf));
  return rows.filter((row) => !keys.has(keyOf(row)));
}
