// The list of jobs. Filters are in the address, so that a view can be shared.

import { html, useMemo, useState } from "../vendor.js";
import { may, now, request, useList, withQuery } from "../api.js";
import { Chips, Confirm, Empty, Head, Loaded, Menu, More, News, Shape, State, Table, Text, When, at, count, length, reasonWord, remember, remembered, stateGroup, stateWord, tell, useQuery, useSearch } from "../parts.js";
import { OperationLine } from "./operations.js";

const EVERY_S = 30;
const STATES = [["", "All"], ["ACTIVE", "Active"], ["PAUSED", "Paused"], ["INACTIVE", "Inactive"], ["COMPLETED", "Completed"], ["FAULTED", "Faulted"]];
const FILTERS = ["due", "search", "state", "collection", "tag", "resourceId"];
const HOUR_MS = 3600e3;

export function Jobs() {
  const [query, change] = useQuery();
  const asked = Object.fromEntries(FILTERS.slice(1).map((name) => [name, query[name]]));
  const due = useMemo(() => (query.due ? { nextRunBefore: new Date(now() + HOUR_MS).toISOString(), sort: "nextRunAt" } : {}), [query.due]);
  const list = useList(withQuery("/v1/jobs", { ...asked, ...due, limit: 50, include: "total,lastRuns" }), EVERY_S, (job) => job.id);
  const [stars, setStars] = useState(remembered("stars", []));
  const [begun, setBegun] = useState("");
  const star = (id) => {
    const kept = stars.includes(id) ? stars.filter((each) => each !== id) : [...stars, id];
    setStars(kept);
    remember("stars", kept);
  };
  const filtered = FILTERS.some((name) => query[name]);
  const total = list.data?.total;
  const rows = list.items && (query.due ? list.items : [...list.items].sort((one, other) => stars.includes(other.id) - stars.includes(one.id)));
  return html`<${Head} title="Jobs" lead=${total !== undefined && `${total.toLocaleString("en-GB")} ${total === 1 ? "job" : "jobs"}${filtered ? " match" : ""}`}>
      ${may("jobs:write") && html`${!query.due && filtered && html`<${Many} filters=${asked} total=${total ?? 0} reload=${list.reload} onBegun=${setBegun} />`}<a class="button primary" href=${at("/jobs/new")}>Create job</a>`}<//>
    ${begun && html`<${OperationLine} key=${begun} id=${begun} onEnd=${list.reload} />`}
    <${Filters} query=${query} change=${change} due />
    <${Loaded} answer=${list} what="jobs">${rows?.length ? html`<${News} list=${list} noun="job" /><${Table} label="Jobs" keyOf=${(job) => job.id} rows=${rows} href columns=${columns(stars, star)} /><${More} list=${list} />` : rows && html`<${Nothing} filtered=${filtered} change=${change} />`}<//>`;
}

const VERBS = {
  pause: ["Pause", "Their occurrences are skipped, and counted in the ledger, until somebody resumes them."],
  resume: ["Resume", "Their schedules go on from now."],
  activate: ["Activate", "Their schedules act from now on."],
  deactivate: ["Deactivate", "They do not run until somebody activates them."],
  delete: ["Delete", "They go with their schedules and open runs. Ended runs stay in the ledger until they expire."],
};

/** Offers actions on all jobs that match the filters. A dry run gives their number first. onBegun: gets the id of an
 * operation that changes them little by little. */
function Many({ filters, total, reload, onBegun }) {
  const [verb, setVerb] = useState("");
  const send = async (query) => {
    const [method, path] = verb === "delete" ? ["DELETE", "/v1/jobs"] : ["POST", `/v1/jobs:${verb}`];
    const { body } = await request(method, withQuery(path, { ...filters, ...query }), method === "POST" ? { body: {} } : {});
    return body;
  };
  const [word, consequence] = VERBS[verb] ?? [];
  const chosen = Object.entries(filters).filter(([, value]) => value).map(([name, value]) => `${name} ${value}`);
  const act = async (number) => {
    const done = await send({ expectedCount: number });
    if (done.operation) onBegun(done.operation.id);
    tell(done.operation ? `Began with ${count(number, "job")}.` : `${word}d ${count(number, "job")}.`);
    await reload();
  };
  return html`${total > 0 && html`<${Menu} label=${`Do with all ${count(total, "job")}`} title=${`With all ${total.toLocaleString("en-GB")}`}>${Object.entries(VERBS).map(([name, [title]]) => html`<button type="button" class=${name === "delete" ? "danger" : ""} aria-haspopup="dialog" onClick=${() => setVerb(name)}>${title} them</button>`)}<//>`}
    ${verb && html`<${Confirm} danger=${verb === "delete"} title=${`${word} many jobs`} onClose=${() => setVerb("")} count=${() => send({ dryRun: true }).then((body) => body.count)} word=${(number) => `${word} ${count(number, "job")}`} act=${act}
      consequence=${(number) => `${number === null ? "…" : count(number, "job")} ${chosen.length ? `with ${chosen.join(", ")}` : "in all"}. ${consequence}`} />`}`;
}

/** Lists jobs that run containers on ECS. */
export function Tasks() {
  const [query, change] = useQuery();
  const asked = Object.fromEntries(FILTERS.slice(1).map((name) => [name, query[name]]));
  const list = useList(withQuery("/v1/jobs", { ...asked, actionType: "ecs", limit: 100 }), EVERY_S, (job) => job.id);
  const rows = list.items;
  const filtered = FILTERS.some((name) => query[name]);
  return html`<${Head} title="Tasks on ECS" lead="Jobs that run a container as a task">${may("jobs:write") && html`<a class="button primary" href=${at("/jobs/new", { type: "ecs" })}>Create task</a>`}<//>
    <${Filters} query=${query} change=${change} />
    <${Loaded} answer=${list} what="tasks">${rows?.length ? html`<${News} list=${list} noun="task" /><${Table} label="Tasks" keyOf=${(job) => job.id} rows=${rows} href columns=${[
        ["Name", (job) => html`<a href=${at(`/jobs/${job.id}`)}><${Text} cut=${60}>${job.name}<//></a>`, "main"],
        ["State", (job) => html`<${JobState} job=${job} />`], ["Next run", (job) => html`<${Next} job=${job} />`],
        ["Task definition", (job) => html`<code>${job.action.taskDefinition}</code>`], ["Container", (job) => job.action.container, "wide"],
      ]} /><${More} list=${list} />` : rows && (filtered ? html`<${Nothing} filtered change=${change} />` : html`<${Empty} title="No tasks yet"><p>A task runs a container on ECS at each occurrence of its job.</p><//>`)}<//>`;
}

const columns = (stars, star) => [
  ["", (job) => html`<button type="button" class="star" aria-pressed=${stars.includes(job.id)} aria-label=${`Favourite: ${job.name}`} onClick=${() => star(job.id)}>${stars.includes(job.id) ? "★" : "☆"}</button>`, "narrow"],
  ["Name", (job) => html`<a href=${at(`/jobs/${job.id}`)}><${Text} cut=${60}>${job.name}<//></a>${job.facade !== "native" && html`${" "}<span class="tag">${job.facade}</span>`}`, "main"],
  ["State", (job) => html`<${JobState} job=${job} />`],
  ["Next run", (job) => html`<${Next} job=${job} />`],
  ["Last runs", (job) => html`<${LastRuns} runs=${job.lastRuns ?? []} />`, "whole"],
  ["Target", (job) => html`<span class="faint"><${Text} cut=${70}>${target(job.action)}<//></span>`, "target"],
  ["Collection", (job) => html`<${Text} cut=${24}>${job.collection}<//>`, "wide"],
  ["Tags", (job) => job.tags.map((tag) => html`<a class="tag" href=${at("/jobs", { tag })}><${Text} cut=${24}>${tag}<//></a>${" "}`), "wide"],
];

const PLACES = { http: "url", job: "jobId", lambda: "function", sqs: "queueUrl", sns: "topicArn", states: "stateMachineArn", events: "bus", ecs: "taskDefinition", event: "consumer", queue: "application" };

/** Returns the target of an action, in one line. */
export function target(action) {
  if (action.type === "http") return `${action.method} ${action.url}`;
  const place = action[PLACES[action.type]] ?? action.name ?? "";
  return `${action.type} ${typeof place === "string" ? place : ""}`.trim();
}

/** Shows the state of a job and, if it does not run, who or what stopped it. */
export function JobState({ job }) {
  if (job.state === "PAUSED" && job.pause) {
    return html`<${State} state="PAUSED" /> <span class="faint">${job.pause.until ? html`until <${When} at=${job.pause.until} far=${false} />` : html`since <${When} at=${job.pause.since} far=${false} />`}</span>`;
  }
  return html`<${State} state=${job.state} reason=${job.stateReason} />`;
}

export function Next({ job }) {
  if (job.nextRunAt) return html`<${When} at=${job.nextRunAt} />`;
  return html`<span class="faint">${{ PAUSED: "paused", INACTIVE: "switched off", COMPLETED: "ended", FAULTED: "faulted" }[job.state] ?? "no schedule"}</span>`;
}

/** Shows the last runs from old to new by shape and colour, and then the newest in words. */
function LastRuns({ runs }) {
  if (!runs.length) return html`<span class="faint">none yet</span>`;
  const [newest] = runs;
  return html`<span class="spark" aria-hidden="true">${runs.toReversed().map((run) => html`<${Shape} group=${stateGroup(run.state)} />`)}</span>
    <a href=${at(`/runs/${newest.runId}`)} title=${`Planned ${newest.plannedAt}`}>${stateWord(newest.state)}${newest.reason && newest.reason !== "ON_TIME" ? html`${" "}<span class="faint">${reasonWord(newest.reason)}</span>` : ""}</a>${newest.durationMs !== null && newest.durationMs !== undefined && html`${" "}<span class="faint length">${length(newest.durationMs)}</span>`}`;
}

function Filters({ query, change, due = false }) {
  const [search, setSearch] = useSearch(query, change);
  const more = ["collection", "tag", "resourceId"].filter((name) => query[name]);
  return html`<div class="filters"><input type="search" aria-label="Search by name" placeholder="Search by name" value=${search} onInput=${(event) => setSearch(event.target.value)} />
    <${Chips} label="State" options=${STATES} value=${query.state} onChange=${(state) => change({ state })} />
    ${due && html`<button type="button" aria-pressed=${query.due === "1h"} class="toggle" onClick=${() => change({ due: query.due ? "" : "1h" })}>Due within an hour</button>`}
    ${more.map((name) => html`<button type="button" class="tag" title="Remove this filter" onClick=${() => change({ [name]: "" })}>${name}: <${Text} cut=${24}>${query[name]}<//> ✕</button>`)}</div>`;
}

function Nothing({ filtered, change }) {
  if (filtered) return html`<${Empty} title="No job matches"><p><button type="button" onClick=${() => change(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>Clear the filters</button></p><//>`;
  return html`<${Empty} title="No jobs yet"><p>A job says what to do; its schedules say when.</p>${may("jobs:write") && html`<p><a class="button primary" href=${at("/jobs/new")}>Create job</a></p>`}<//>`;
}
