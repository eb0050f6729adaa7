// The console: the sign-in, the page of the address, and the frame around it.

import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { actsFor, askOtherTabs, askedAgain, clockAhead, freshness, isProvider, may, now, session, signInWith, signOut, useAnswer, useWatched } from "./api.js";
import { Dialog, Field, Head, Menu, NotThere, ProblemNote, Text, address, at, clock, distance, focusOn, go, leave, length, notice, ownZone, remember, remembered, visible, zone, zoneName } from "./parts.js";
import { atIssuer, issuer, signInAtIssuer } from "./signin.js";

/** Each page is a module, which is fetched when it is first opened: its pattern, module, export, and menu entry.
 * @type {[RegExp, string, string, string][]} */
const PAGES = [
  [/^\/overview$/, "./pages/overview.js", "Overview", "overview"],
  [/^\/jobs$/, "./pages/jobs.js", "Jobs", "jobs"],
  [/^\/jobs\/new$/, "./pages/edit.js", "Create", "jobs"],
  [/^\/jobs\/([^/]+)\/edit$/, "./pages/edit.js", "Edit", "jobs"],
  [/^\/jobs\/([^/]+)$/, "./pages/job.js", "Job", "jobs"],
  [/^\/runs$/, "./pages/runs.js", "Runs", "runs"],
  [/^\/runs\/([^/]+)$/, "./pages/runs.js", "Run", "runs"],
  [/^\/errors$/, "./pages/errors.js", "Errors", "errors"],
  [/^\/errors\/([^/]+)$/, "./pages/errors.js", "ErrorGroup", "errors"],
  [/^\/operations$/, "./pages/operations.js", "Operations", "operations"],
  [/^\/operations\/([^/]+)$/, "./pages/operations.js", "OperationPage", "operations"],
  [/^\/collections$/, "./pages/resources.js", "Collections", "collections"],
  [/^\/collections\/([^/]+)$/, "./pages/resources.js", "Collection", "collections"],
  [/^\/calendars$/, "./pages/resources.js", "Calendars", "calendars"],
  [/^\/calendars\/([^/]+)$/, "./pages/resources.js", "Calendar", "calendars"],
  [/^\/flow-keys$/, "./pages/resources.js", "FlowKeys", "flow-keys"],
  [/^\/flow-keys\/([^/]+)$/, "./pages/resources.js", "FlowKey", "flow-keys"],
  [/^\/job-sets$/, "./pages/sets.js", "JobSets", "job-sets"],
  [/^\/job-sets\/([^/]+)$/, "./pages/sets.js", "JobSet", "job-sets"],
  [/^\/consumers$/, "./pages/consumers.js", "Consumers", "consumers"],
  [/^\/consumers\/([^/]+)$/, "./pages/consumers.js", "Consumer", "consumers"],
  [/^\/redirects$/, "./pages/redirects.js", "Redirects", "redirects"],
  [/^\/tasks$/, "./pages/jobs.js", "Tasks", "tasks"],
  [/^\/access$/, "./pages/access.js", "Access", "access"],
  [/^\/tenants$/, "./pages/access.js", "Tenants", "tenants"],
  [/^\/tenants\/([^/]+)$/, "./pages/access.js", "Tenant", "tenants"],
];
const MENU = [
  ["overview", "Overview", ["jobs:read"], "o"],
  ["jobs", "Jobs", ["jobs:read"], "j"],
  ["runs", "Runs", ["jobs:read"], "r"],
  ["errors", "Errors", ["jobs:read"], "e"],
  ["operations", "Operations", ["jobs:read", "errors:edit", "jobs:write", "provider:admin"], "p"],
];
const MORE = [
  ["collections", "Collections", ["jobs:read"]],
  ["calendars", "Calendars", ["jobs:read"]],
  ["flow-keys", "Flow keys", ["jobs:read"]],
  ["job-sets", "Job sets", ["jobs:read"]],
  ["consumers", "Consumers", ["jobs:read"]],
  ["redirects", "Redirects", ["jobs:read"]],
  ["tasks", "Tasks on ECS", ["jobs:read"]],
  ["access", "Credentials", ["admin"]],
  ["tenants", "Tenants", ["provider:admin"]],
];

/** Returns the first page that the session may see. */
function home() {
  if (isProvider() && !actsFor.value) return "/tenants";
  return `/${[...MENU, ...MORE].find(([, , scopes]) => may(...scopes))?.[0] ?? "overview"}`;
}

/** Returns whether the page needs a tenant that the provider has yet to choose. */
const lacksTenant = (path) => isProvider() && !actsFor.value && !/^\/(tenants|access|operations)(\/|$)/.test(path);

/** Returns a part of an address as it was before it was encoded; null if it cannot be read. */
function decoded(part) {
  try {
    return decodeURIComponent(part ?? "");
  } catch {
    return null;
  }
}

const FRESH_AFTER = 2;

function Page({ path }) {
  const [loaded, setLoaded] = useState({ module: "", pages: null, failed: false });
  const found = PAGES.find(([pattern]) => pattern.test(path));
  const [pattern, module, name] = found ?? [null, null, null];
  useEffect(() => {
    if (module) import(module).then((pages) => setLoaded({ module, pages, failed: false }), () => setLoaded({ module, pages: null, failed: true }));
  }, [module]);
  const shown = useRef("");
  if (shown.current !== path) leave();
  shown.current = path;
  const id = pattern && decoded(path.match(pattern)[1]);
  if (id === null) return html`<${NotThere} />`;
  if (lacksTenant(path)) return html`<${ChooseTenant} />`;
  if (loaded.module !== module) return null;
  if (loaded.failed) return html`<p class="problem" role="alert">This page could not be loaded. The console may have a new version: <a href=${location.href} data-reload>load it again</a>.</p>`;
  return html`<${loaded.pages[name]} key=${path} id=${id} />`;
}

/** Says to a provider that a page is a tenant's. */
function ChooseTenant() {
  return html`<${Head} title="Choose a tenant" /><section class="empty"><p>This page shows what belongs to one tenant.</p>
    <p><a class="button primary" href=${at("/tenants")}>Go to the tenants</a></p></section>`;
}

function Frame() {
  const path = new URL(useWatched(address)).pathname.replace(/^\/console/, "").replace(/\/$/, "") || home();
  const shownZone = useWatched(zone);
  const mine = useWatched(session);
  const acting = useWatched(actsFor);
  const [help, setHelp] = useState(false);
  const section = PAGES.find(([pattern]) => pattern.test(path))?.[3] ?? path.slice(1);
  const tenant = mine.tenant ?? acting ?? (isProvider() ? "provider" : "");
  document.body.dataset.tenant = tenant ? visible(tenant) : "Sweephand";
  useShortcuts(() => setHelp(true));
  const shown = ([name, , scopes]) => may(...scopes) && !lacksTenant(`/${name}`);
  const setZone = (name) => {
    zone.set(name);
    remember("zone", name);
  };
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to the page</a>
    <header class="bar">
      <a class="brand" href=${at("")}>Sweephand</a>
      ${tenant && html`<span class="tenant" title="Tenant">${visible(tenant)}${acting && isProvider() && html`${" "}<a href="/console/tenants" title="Stop acting for this tenant" aria-label="Stop acting for this tenant">✕</a>`}</span>`}
      <nav aria-label="Pages">${MENU.filter(shown).map(([name, title]) => html`<a href=${at(`/${name}`)} aria-current=${name === section ? "page" : null}>${title}</a>`)}<${More} section=${section} path=${path} shown=${MORE.filter(shown)} /></nav>
      <form class="jump" role="search" onSubmit=${(event) => { event.preventDefault(); jump(event.target.elements.q.value.trim()); }}>
        <input name="q" type="search" placeholder="Search jobs, or an id" aria-label="Search jobs, or jump to an id" /></form>
      <div class="chips small" role="group" aria-label="Time zone">${[...new Set([ownZone, "UTC"])].map((name) => html`<button type="button" aria-pressed=${shownZone === name} onClick=${() => setZone(name)}>${zoneName(name)}</button>`)}</div>
      <${Freshness} />
      <button type="button" class="quiet" aria-label="Keys" title="Keys" aria-haspopup="dialog" onClick=${() => setHelp(true)}>?</button>
      <button type="button" class="quiet" title=${visible(mine.clientId)} onClick=${signOut}>Sign out</button>
    </header>
    <${ClockNote} />
    <main id="main" tabindex="-1"><${Page} path=${path} /></main>
    <${Notice} />
    ${help && html`<${Keys} onClose=${() => setHelp(false)} />`}`;
}

function More({ section, path, shown }) {
  if (!shown.length) return null;
  const current = shown.find(([name]) => name === section);
  return html`<${Menu} key=${path} title=${current?.[1] ?? "More"} current=${current ? "page" : null}>${shown.map(([name, title]) => html`<a href=${at(`/${name}`)} aria-current=${name === section ? "page" : null}>${title}</a>`)}<//>`;
}

function jump(text) {
  const run = /^[0-9a-f-]{36}_[0-9a-f-]{36}$/;
  const job = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
  go(run.test(text) ? at(`/runs/${text}`) : job.test(text) ? at(`/jobs/${text}`) : at("/jobs", { search: text }));
}

/** Shows the age of the page; a screen reader says it once a minute. */
function Freshness() {
  const { at: when, failures } = useWatched(freshness);
  if (!when) return null;
  const old = failures >= FRESH_AFTER;
  return html`<span class=${`fresh ${old ? "old" : ""}`} title="When the API answered last">${old ? `No answer since ${clock(when)}` : `As of ${clock(when)}`}</span>`;
}

function ClockNote() {
  const ahead = useWatched(clockAhead);
  if (Math.abs(ahead) < 60000) return null;
  return html`<p class="note" role="status">The clock of this browser is ${length(ahead)} ${ahead > 0 ? "slow" : "fast"}. All times here are by the service's clock.</p>`;
}

function Notice() {
  const said = useWatched(notice);
  return html`<div class="notice" role="status">${said && html`<span>${said.text}</span>${said.undo && html`<button type="button" onClick=${() => { notice.set(null); said.undo(); }}>Undo</button>`}`}</div>`;
}

// ---- Keys -----------------------------------------------------------------------------------------------------------

const KEYS = [
  ["/", "search"], ["?", "these keys"], ["g o", "overview"], ["g j", "jobs"], ["g r", "runs"], ["g e", "errors"], ["g p", "operations"],
  ["j k", "next and previous row"], ["Enter", "open the row"], ["Esc", "close"],
];

function useShortcuts(showHelp) {
  const led = useRef(0);
  useEffect(() => {
    const onKey = (event) => {
      const typing = event.target.closest?.("input,textarea,select,dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey || !remembered("keys", true)) return;
      const place = led.current > performance.now() && MENU.find(([, , , key]) => key === event.key);
      led.current = event.key === "g" ? performance.now() + 1500 : 0;
      if (place) go(at(`/${place[0]}`));
      else if (event.key === "/") focusOn(".jump input");
      else if (event.key === "?") showHelp();
      else if (event.key === "j" && !event.target.closest?.("tbody")) focusOn("main tbody a");
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

function Keys({ onClose }) {
  const [on, setOn] = useState(remembered("keys", true));
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="keys">${KEYS.map(([key, text]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <label class="check"><input type="checkbox" checked=${on} onChange=${(event) => { setOn(event.target.checked); remember("keys", event.target.checked); }} /> Single-key shortcuts</label>
    <p class="actions"><button type="button" onClick=${onClose}>Close</button></p><//>`;
}

// ---- Sign-in --------------------------------------------------------------------------------------------------------

function SignIn({ again }) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const form = useRef(null);
  const submit = async (event) => {
    event.preventDefault();
    const { id, secret } = event.target.elements;
    setBusy(true);
    setProblem(null);
    try {
      await signInWith(id.value.trim(), secret.value.trim());
    } catch (thrown) {
      setProblem(thrown);
      if (thrown.status === 401) secret.select();
    }
    setBusy(false);
  };
  useLayoutEffect(() => {
    if (!again) document.title = "Sign in · Sweephand";
    form.current.elements[again ? "secret" : "id"].focus();
  }, []);
  return html`<form class="signin" ref=${form} onSubmit=${submit}>
    ${again ? html`<p>The session has ended. Sign in again; the page stays as it is.</p>` : html`<h1>Sign in to Sweephand</h1>`}
    <${Field} label="Client id"><input name="id" autocomplete="username" required defaultValue=${again ? session.value?.clientId ?? "" : ""} /><//>
    <${Field} label="Secret"><input name="secret" type="password" autocomplete="current-password" required /><//>
    <${ProblemNote} problem=${problem} />
    <p class="actions"><button class="primary" aria-busy=${busy}>Sign in</button></p>
    ${issuer && html`<p class="actions"><button type="button" onClick=${signInAtIssuer}>Sign in at ${new URL(issuer.authorize_url).host}</button></p>`}
    <p class="hint">The secret is exchanged for a token that this tab keeps in its memory only.</p></form>`;
}

/** Shows the sign-in at an issuer. */
function AtIssuer() {
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    atIssuer().then((back) => back && go(back, true), setProblem);
  }, []);
  return html`<main class="alone">${problem ? html`<div class="signin"><h1>Sign in to Sweephand</h1><${ProblemNote} problem=${problem} /><p class="actions"><a class="button" href="/console">Begin again</a></p></div>` : html`<p class="waiting">Signing in …</p>`}</main>`;
}

function App() {
  const mine = useWatched(session);
  const again = useWatched(askedAgain);
  const [asked, setAsked] = useState(false);
  const path = new URL(useWatched(address)).pathname;
  useEffect(() => {
    askOtherTabs().then(() => setAsked(true));
  }, []);
  if (issuer && path === "/console/sign-in") return html`<${AtIssuer} />`;
  if (!mine) return asked && html`<main class="alone"><${SignIn} /></main>`;
  return html`<${Frame} />${again && html`<${Dialog} title="Sign in again" onClose=${null}><${SignIn} again /><//>`}`;
}

/** Follows links within the console without loading the page again. */
document.addEventListener("click", (event) => {
  /** @type {HTMLAnchorElement | null} */
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.target || "reload" in link.dataset) return;
  const goal = new URL(link.href);
  if (goal.origin !== location.origin || !/^\/console(\/(?![0-9a-f]{16}\/)|$)/.test(goal.pathname)) return;
  event.preventDefault();
  go(goal.href, goal.href === location.href);
  if (goal.pathname !== location.pathname) scrollTo(0, 0);
});

/** Reads the tenant of the address, which means nothing to the session of a tenant. */
function readTenant() {
  const named = new URL(location.href).searchParams.get("as") ?? "";
  const ofTenant = session.value !== null && session.value.tenant !== null;
  actsFor.set(!ofTenant && /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(named) ? named : null);
}
address.watchers.add(readTenant);
session.watchers.add(readTenant);
readTenant();
render(html`<${App} />`, document.getElementById("app"));
