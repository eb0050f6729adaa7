// One job: its state, its schedules, the coming month, its runs and its changes.

import { html, useState } from "../vendor.js";
import { may, now, request, useAnswer, useList, withQuery } from "../api.js";
import { Action, Confirm, Dialog, Empty, Facts, Field, Head, Loaded, More, ProblemNote, Shape, Source, State, Table, Tabs, Text, When, at, clock, count, dayKey, go, stateGroup, stateWord, tell, useQuery, zone, zoneName } from "../parts.js";
import { JobState, Next, target } from "./jobs.js";
import { RunTable, StateFilter } from "./runs.js";

const EVERY_S = 15;
const DAY_MS = 86400e3;

export function Job({ id }) {
  const job = useAnswer(`/v1/jobs/${encodeURIComponent(id)}?include=schedules`, EVERY_S);
  return html`<${Loaded} page answer=${job} what="the job">${job.data && html`<${Shown} job=${job.data} reload=${job.reload} />`}<//>`;
}

function Shown({ job, reload }) {
  const path = `/v1/jobs/${job.id}`;
  return html`<${Head} title=${html`<${Text} cut=${100}>${job.name}<//>`} plain=${job.name.slice(0, 60)} back=${["Jobs", at("/jobs")]} lead=${html`<${JobState} job=${job} />${job.nextRunAt && html` <span class="faint">next</span> <${Next} job=${job} />`}`}>
      <${Verbs} job=${job} path=${path} reload=${reload} /><//>
    ${job.description && html`<p class="about"><${Text} cut=${300}>${job.description}<//></p>`}
    ${job.pause?.note && html`<p class="note">Paused <${When} at=${job.pause.since} />${job.pause.by && html` by <${Text}>${job.pause.by}<//>`}: <${Text} cut=${300}>${job.pause.note}<//></p>`}
    <${Tabs} label="Parts of the job" tabs=${[
      ["schedules", `Schedules ${job.schedules.length}`, () => html`<${Schedules} job=${job} />`],
      ["month", "Month", () => html`<${Month} job=${job} />`],
      ["runs", "Runs", () => html`<${JobRuns} job=${job} />`],
      ["changes", "Changes", () => html`<${Changes} job=${job} />`],
      ["details", "Details", () => html`<${Details} job=${job} />`],
    ]} />`;
}

// ---- Verbs ----------------------------------------------------------------------------------------------------------

function Verbs({ job, path, reload }) {
  const [open, setOpen] = useState("");
  const close = () => setOpen("");
  const done = (text) => async () => {
    await reload();
    tell(text);
  };
  const post = async (verb, body) => request("POST", `${path}/${verb}`, { body });
  return html`
    ${may("runs:write") && html`<button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen("run")}>Run job now</button>`}
    ${may("jobs:write") && html`
      ${job.state === "PAUSED"
        ? html`<${Action} key="resume" act=${() => post("resume").then(done("Resumed the job."))}>Resume job<//>`
        : html`<button type="button" aria-haspopup="dialog" onClick=${() => setOpen("pause")}>Pause job</button>`}
      ${job.active
        ? html`<${Action} key="deactivate" act=${() => post("deactivate").then(done("Deactivated the job."))}>Deactivate job<//>`
        : html`<${Action} key="activate" act=${() => post("activate").then(done("Activated the job."))}>Activate job<//>`}
      <a class="button" href=${at(`/jobs/${job.id}/edit`)}>Edit job</a>
      <button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen("delete")}>Delete job</button>`}
    ${open === "run" && html`<${RunNow} job=${job} path=${path} onClose=${close} />`}
    ${open === "pause" && html`<${Pause} post=${post} onClose=${close} onDone=${done("Paused the job.")} />`}
    ${open === "delete" && html`<${Confirm} danger title="Delete job" onClose=${close} word=${() => "Delete job"}
      consequence=${() => `The job, its ${count(job.schedules.length, "schedule")} and its open runs end. Its ended runs stay in the ledger until they expire.`}
      act=${async () => { await request("DELETE", path); go(at("/jobs")); tell("Deleted the job."); }} />`}`;
}

function RunNow({ job, path, onClose }) {
  const [schedule, setSchedule] = useState("");
  const [drop, setDrop] = useState(true);
  const act = async () => {
    const { body } = await request("POST", `${path}/run`, { body: { ...(schedule && { scheduleId: schedule }), ifActive: drop ? "drop" : "start" }, key: crypto.randomUUID() });
    tell(body.started === false ? "A run is active already: nothing was started." : "Started the run.");
    go(at(`/runs/${body.runId}`));
  };
  return html`<${Dialog} title="Run job now" onClose=${onClose}>
    <p>The target is called once, outside of the schedules.</p>
    ${job.schedules.length > 0 && html`<${Field} label="Run it for" hint="Its payload is sent, and the run counts among its runs."><select value=${schedule} onChange=${(event) => setSchedule(event.target.value)}><option value="">the job itself</option>${job.schedules.map((each) => html`<option value=${each.id}>${named(each) || each.summary}</option>`)}</select><//>`}
    <label class="check"><input type="checkbox" checked=${drop} onChange=${(event) => setDrop(event.target.checked)} /> Start nothing while another run is active</label>
    <p class="actions"><${Action} kind="primary" act=${act}>Run job now<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

function Pause({ post, onClose, onDone }) {
  const [note, setNote] = useState("");
  const [until, setUntil] = useState("");
  const [problem, setProblem] = useState(null);
  const act = async () => {
    setProblem(null);
    try {
      await post("pause", { ...(note && { note }), ...(until && { until: instantOf(until) }) });
    } catch (thrown) {
      setProblem(thrown);
      return;
    }
    onClose();
    await onDone();
  };
  return html`<${Dialog} title="Pause job" onClose=${onClose}>
    <p>Its occurrences are skipped, and counted in the ledger, until somebody resumes it.</p>
    <${Field} label="Note" name="note" problem=${problem}><input value=${note} maxlength="1000" onInput=${(event) => setNote(event.target.value)} /><//>
    <${Field} label=${`Resume at, in ${zoneName()} (optional)`} name="until" problem=${problem}><input type="datetime-local" value=${until} onInput=${(event) => setUntil(event.target.value)} /><//>
    <${ProblemNote} problem=${problem} />
    <p class="actions"><${Action} kind="primary" act=${act}>Pause job<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

/** Returns the instant of a wall time in the shown zone, as a string with Z. */
export function instantOf(wall) {
  if (!wall) return null;
  const guess = Date.parse(`${wall.length === 16 ? `${wall}:00` : wall}Z`);
  const offset = (ms) => Date.parse(`${dayKey(ms)}T${clock(ms)}Z`) - ms;
  let ms = guess - offset(guess);
  ms = guess - offset(ms);
  return new Date(ms).toISOString().replace(".000", "");
}

/** Returns the name that somebody gave a schedule; empty where its id stands for it. */
export const named = (schedule) => (schedule.name === schedule.id ? "" : schedule.name ?? "");

// ---- Parts ----------------------------------------------------------------------------------------------------------

function Schedules({ job }) {
  if (!job.schedules.length) return html`<${Empty} title="No schedules yet"><p>This job runs only when somebody starts it.</p><//>`;
  return html`<div class="cards">${job.schedules.map((each) => html`<article class="card" key=${each.id}>
    <h2><${Text} cut=${80}>${named(each) || "Schedule"}<//></h2>
    <p><${State} state=${each.state} reason=${each.stateReason} /></p>
    <p class="summary"><${Text} cut=${300}>${each.summary}<//></p>
    <${Facts} items=${[
      ["Zone", each.timezone],
      ["Last run", each.lastRun && html`<a href=${each.lastRun.id ? at(`/runs/${each.lastRun.id}`) : null}><${State} state=${each.lastRun.state} reason=${each.lastRun.reason} /></a>`],
      ["Next runs", each.nextRuns?.length > 0 && html`<ol class="next">${each.nextRuns.map((next) => html`<li><${When} at=${typeof next === "string" ? next : next.plannedAt} /></li>`)}</ol>`],
      ["Totals", each.totals && html`${each.totals.exact === false ? "about " : ""}${each.totals.succeeded} succeeded, ${each.totals.failed} failed, ${each.totals.skipped} skipped, ${each.totals.missed} missed of ${each.totals.planned} planned`],
    ]} /></article>`)}</div>`;
}

/** Shows a month as a calendar table: each day with its planned and recorded occurrences. */
function Month({ job }) {
  const [query, change] = useQuery();
  const month = /^(19[7-9]\d|2\d{3})-(0[1-9]|1[0-2])$/.test(query.month ?? "") ? query.month : dayKey(now()).slice(0, 7);
  const [year, number] = month.split("-").map(Number);
  const following = number === 12 ? `${year + 1}-01` : `${year}-${String(number + 1).padStart(2, "0")}`;
  const before = number === 1 ? `${year - 1}-12` : `${year}-${String(number - 1).padStart(2, "0")}`;
  const title = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" }).format(Date.UTC(year, number - 1, 15));
  return html`<div class="filters"><button type="button" onClick=${() => change({ month: before })}>Previous month</button><h2>${title}</h2><button type="button" onClick=${() => change({ month: following })}>Next month</button><span class="faint">Times in ${zoneName()}</span></div>
    <${Days} key=${`${month} ${zone.value}`} job=${job} month=${month} title=${title} until=${midnight(`${following}-01`) - 1000} />`;
}

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const midnight = (key) => Date.parse(instantOf(`${key}T00:00`));

/** Shows the days of a month. A job that runs often has more occurrences than one answer: the month then goes on from
 * today, and any other day is read when somebody asks for it. */
function Days({ job, month, title, until }) {
  const first = midnight(`${month}-01`);
  const today = dayKey(now());
  const place = (from, to) => withQuery(`/v1/jobs/${job.id}/occurrences`, { from: new Date(from).toISOString(), until: new Date(to).toISOString(), limit: 200 });
  const answer = useAnswer(place(first, until));
  const cut = Boolean(answer.data?.nextCursor);
  const start = today.startsWith(month) ? midnight(today) : first;
  const ahead = useAnswer(cut && start > first ? place(start, until) : null);
  const [asked, setAsked] = useState([]);
  const parts = [{ from: first, until, data: answer.data }, { from: start, until, data: ahead.data }, ...asked].filter(({ data }) => data);
  const days = daysOf(parts);
  const ask = (key) => async () => {
    const from = midnight(key);
    const end = midnight(dayKey(from + 1.5 * DAY_MS)) - 1000;
    const { body } = await request("GET", place(from, end));
    setAsked((before) => [...before, { from, until: end, data: body }]);
  };
  const [year, number] = month.split("-").map(Number);
  const last = new Date(Date.UTC(year, number, 0)).getUTCDate();
  const lead = (new Date(Date.UTC(year, number - 1, 1)).getUTCDay() + 6) % 7;
  const cells = [...Array(lead).fill(null), ...Array.from({ length: last }, (_, index) => `${month}-${String(index + 1).padStart(2, "0")}`)];
  while (cells.length % 7) cells.push(null);
  const weeks = Array.from({ length: cells.length / 7 }, (_, index) => cells.slice(index * 7, index * 7 + 7));
  const cell = (key) => html`<span class="number">${Number(key.slice(8))}</span><${DayMarks} day=${days.get(key)} />${cut && !wasRead(parts, midnight(key)) && html`<${Action} kind="quiet" act=${ask(key)}>Read<span class="unseen"> ${Number(key.slice(8))} ${title}</span><//>`}`;
  return html`<${Loaded} answer=${answer} what="the month"><div class="scroll" role="region" aria-label="Month" tabindex="0"><table class="month" role="table"><thead role="rowgroup"><tr role="row">${WEEKDAYS.map((name) => html`<th scope="col" role="columnheader">${name}</th>`)}</tr></thead>
      <tbody role="rowgroup">${weeks.map((week) => html`<tr role="row">${week.map((key, index) => html`<td role="cell" data-title=${WEEKDAYS[index]} class=${key === today ? "today" : ""}>${key && cell(key)}</td>`)}</tr>`)}</tbody></table></div>
      ${cut && html`<p class="hint">This job runs so often that not every day was read.</p>`}
      ${answer.data && !answer.data.items.length && html`<p class="hint">Nothing ran in this month, and nothing is planned.</p>`}
      ${!cut && answer.data?.searchedUntil && Date.parse(answer.data.searchedUntil) < until && html`<p class="hint">Searched until <${When} at=${answer.data.searchedUntil} />.</p>`}<//>`;
}

const MOST_OF_A_DAY = 4;

/** Returns until when a part was read. */
const readUntil = ({ data, until }) => (data.nextCursor && data.items.length ? Date.parse(data.items.at(-1).plannedAt) : until);
const wasRead = (parts, ms) => parts.some((part) => part.from <= ms && ms <= readUntil(part));

/** Returns the occurrences of each day, and whether they are all: {items, whole}. */
function daysOf(parts) {
  const days = new Map();
  for (const part of parts) {
    const mine = new Map();
    for (const each of part.data.items) {
      const key = dayKey(Date.parse(each.plannedAt));
      if (!mine.has(key)) mine.set(key, { items: [], whole: !part.data.nextCursor || key !== dayKey(readUntil(part)) });
      mine.get(key).items.push(each);
    }
    for (const [key, day] of mine) if (!days.get(key)?.whole) days.set(key, day);
  }
  return days;
}

function DayMarks({ day }) {
  if (!day) return null;
  const { items, whole } = day;
  return html`<ul>${items.slice(0, MOST_OF_A_DAY).map((each) => html`<li title=${stateWord(each.state)}><${Shape} group=${stateGroup(each.state)} />${each.runId && each.state !== "SCHEDULED" ? html`<a href=${at(`/runs/${each.runId}`)}>${clock(Date.parse(each.plannedAt), false)}</a>` : clock(Date.parse(each.plannedAt), false)}<span class="unseen"> ${stateWord(each.state)}</span>${each.movedBy && html`<span class="faint" title=${`moved by ${each.movedBy.rule}`}> ↷</span>`}</li>`)}
    ${items.length > MOST_OF_A_DAY && html`<li class="faint">${items.length - MOST_OF_A_DAY} ${whole ? "more" : "or more"}</li>`}</ul>`;
}

function JobRuns({ job }) {
  const [query, change] = useQuery();
  const list = useList(withQuery("/v1/runs", { jobId: job.id, state: query.state, limit: 50 }), 10, (run) => run.id);
  const download = async (format) => {
    const { text } = await request("GET", withQuery("/v1/runs:export", { jobId: job.id, state: query.state, format }));
    save(text, `runs.${format}`, format === "csv" ? "text/csv" : "application/x-ndjson");
  };
  return html`<div class="filters"><${StateFilter} query=${query} change=${change} /><${Action} act=${() => download("csv")}>Download 1,000 runs as CSV<//><${Action} act=${() => download("jsonl")}>as JSON lines<//></div>
    <${Loaded} answer=${list} what="runs"><${RunTable} list=${list} filtered=${Boolean(query.state)} clear=${() => change({ state: "" })} withoutJob /><//>`;
}

/** Offers a text as a download. */
export function save(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const DONE = { create: "created it", replace: "replaced it", patch: "changed it", activate: "activated it", deactivate: "deactivated it", pause: "paused it", resume: "resumed it" };

function Changes({ job }) {
  const list = useList(`/v1/jobs/${job.id}/changes?limit=20`);
  return html`<${Loaded} answer=${list} what="changes"><ol class="log">${list.items?.map((each) => html`<li key=${each.revision}>
      <p><strong><${Text}>${each.actor ?? "Sweephand"}<//></strong> ${DONE[each.operation] ?? each.operation.replace(/_/g, " ")} <${When} at=${each.at} /> <span class="faint">revision ${each.revision}</span></p>${each.reason && html`<p><${Text}>${each.reason}<//></p>`}
      ${each.changes.length > 0 && html`<table class="diff"><thead><tr><th scope="col">Member</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
        <tbody>${each.changes.map((change) => html`<tr><th scope="row"><code><${Text} cut=${60}>${change.path ?? "schedule"}<//></code></th><td class="old-value"><${Value} value=${change.old} /></td><td class="new-value"><${Value} value=${change.new} /></td></tr>`)}</tbody></table>`}</li>`)}</ol><${More} list=${list} /><//>`;
}

function Value({ value }) {
  if (value === null || value === undefined) return html`<span class="faint">not there</span>`;
  return html`<code><${Text} cut=${200}>${typeof value === "string" ? value : JSON.stringify(value)}<//></code>`;
}

function Details({ job }) {
  const shown = Object.fromEntries(["action", "errorAction", "hooks", "policies"].map((name) => [name, job[name]]));
  return html`<${Facts} items=${[
      ["Id", html`<code>${job.id}</code>`],
      ["Target", html`<${Text} cut=${200}>${target(job.action)}<//>`],
      ["Collection", html`<a href=${at("/jobs", { collection: job.collection })}><${Text}>${job.collection}<//></a>`],
      ["Tags", job.tags.length > 0 && job.tags.map((tag) => html`<a class="tag" href=${at("/jobs", { tag })}><${Text} cut=${40}>${tag}<//></a>${" "}`)],
      ["Resource id", job.resourceId && html`<a href=${at("/jobs", { resourceId: job.resourceId })}><${Text}>${job.resourceId}<//></a>`],
      ["API", job.facade],
      ["Job set", job.jobSet],
      ["From", job.startTime && html`<${When} at=${job.startTime} />`],
      ["Until", job.endTime && html`<${When} at=${job.endTime} />`],
      ["Created", html`<${When} at=${job.createdAt} />`],
      ["Changed", html`<${When} at=${job.modifiedAt} /> <span class="faint">revision ${job.revision}</span>`],
    ]} /><${Source} value=${shown} />`;
}
