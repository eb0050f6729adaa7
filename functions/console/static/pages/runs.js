// Runs: the list of what did not simply succeed, and one run with all that happened to it.

import { html, useState } from "../vendor.js";
import { actsFor, may, now, request, useAnswer, useList, withQuery } from "../api.js";
import { Action, Chips, Dialog, Empty, Facts, Field, Head, Loaded, More, News, ProblemNote, Source, State, Table, Text, When, at, clock, copy, go, length, shellWord, stateGroup, stateWord, tell, useQuery } from "../parts.js";
import { REASONS, STATES } from "../words.js";

const EVERY_S = 15;
const OPEN_EVERY_S = 5;
/** The width of the shortest bar, in per cent. */
const NARROWEST = 0.4;
const CHOICES = [["", "All"], ["SUCCESS", "Succeeded"], ["ERROR", "Failed"], ["REQUEST_ERROR", "Request failed"], ["SKIPPED", "Skipped"], ["MISSED", "Missed"], ["TRIGGERED", "Running"], ["RETRY_WAIT", "Retries"]];
/** The states that few ask for: they stand in a list after the others. */
const OTHERS = ["TIMEOUT", "UNKNOWN", "EXPIRED", "CANCELLED", "ACK_RECVD", "ACK_NOT_RECVD", "HELD", "QUEUED"];

export function StateFilter({ query, change }) {
  return html`<${Chips} label="State" options=${CHOICES} value=${query.state} onChange=${(state) => change({ state })} />
    <select class="toggle" aria-label="Other states" value=${OTHERS.includes(query.state) ? query.state : ""} onChange=${(event) => change({ state: event.target.value })}><option value="">Other states</option>${OTHERS.map((state) => html`<option value=${state}>${state === "ACK_NOT_RECVD" ? "Awaits result, not acknowledged" : stateWord(state)}</option>`)}</select>`;
}

export function Runs() {
  const [query, change] = useQuery();
  const asked = Object.fromEntries(["state", "collection", "tag", "resourceId", "kind"].map((name) => [name, query[name]]));
  const list = useList(withQuery("/v1/runs", { ...asked, limit: 50 }), EVERY_S, (run) => run.id);
  const filtered = Object.values(asked).some(Boolean);
  return html`<${Head} title="Runs" lead=${filtered ? "" : "All that did not simply succeed in the last 15 days, and all that waits"} />
    <div class="filters"><${StateFilter} query=${query} change=${change} /></div>
    <${Loaded} answer=${list} what="runs"><${RunTable} list=${list} filtered=${filtered} clear=${() => change({ state: "", collection: "", tag: "", resourceId: "", kind: "" })} /><//>`;
}

/** Returns the name of the job of a run or a group of errors; messages have none. */
export function jobNameOf(of) {
  return of.jobName ?? of.jobId ?? "Message";
}

/** Shows that name, with a link to the job. */
export function JobOf({ of, cut }) {
  const name = html`<${Text} cut=${cut}>${jobNameOf(of)}<//>`;
  return of.jobId ? html`<a href=${at(`/jobs/${of.jobId}`)}>${name}</a>` : name;
}

export function RunTable({ list, filtered, clear, withoutJob }) {
  if (!list.items) return null;
  if (!list.items.length && !list.more) {
    return filtered ? html`<${Empty} title="No run matches"><p><button type="button" onClick=${clear}>Clear the filters</button></p><//>` : html`<${Empty} title=${withoutJob ? "No runs yet" : "Nothing went wrong"}><p>${withoutJob ? "Its first run will be here." : "Runs that fail, are skipped or wait will be here."}</p><//>`;
  }
  const columns = [
    ["State", (run) => html`<a href=${at(`/runs/${run.id}`)}><${State} state=${run.state} reason=${run.reason} /></a>${run.range && html`${" "}<span class="tag">${run.range.count} occurrences</span>`}`, "main"],
    ["Planned", (run) => html`<${When} at=${run.plannedAt} />`],
    ...(withoutJob ? [] : [["Job", (run) => html`<${JobOf} of=${run} cut=${40} />`]]),
    ["Took", (run) => run.startedAt && run.finishedAt ? length(Date.parse(run.finishedAt) - Date.parse(run.startedAt)) : html`<span class="faint">–</span>`, "number"],
    ["Attempts", (run) => `${run.attempt}`, "number"],
    ["Kind", (run) => run.kind.replace(/_/g, " "), "wide"],
    ["Message", (run) => html`<span class="faint"><${Text} cut=${70}>${run.message ?? ""}<//></span>`, "wide"],
  ];
  return html`<${News} list=${list} noun="run" /><${Table} label="Runs" keyOf=${(run) => run.id} rows=${list.items} href columns=${columns} /><${More} list=${list} />`;
}

// ---- One run --------------------------------------------------------------------------------------------------------

export function Run({ id }) {
  const [open, setOpen] = useState(true);
  const run = useAnswer(`/v1/runs/${encodeURIComponent(id)}`, open ? OPEN_EVERY_S : 0);
  const ended = run.data?.status === "COMPLETED";
  if (ended === open && run.data) setOpen(!ended);
  return html`<${Loaded} page answer=${run} what="the run">${run.data && html`<${Shown} run=${run.data} reload=${run.reload} />`}<//>`;
}

function Shown({ run, reload }) {
  return html`<${Head} title=${html`<${State} state=${run.state} reason=${run.reason} />`} plain=${`${stateWord(run.state)} run`} back=${[run.jobName ? "Job" : "Runs", run.jobName ? at(`/jobs/${run.jobId}`) + "#runs" : at("/runs")]}
      lead=${html`<${JobOf} of=${run} cut=${80} /> <span class="faint">planned</span> <${When} at=${run.plannedAt} />`}><${Verbs} run=${run} reload=${reload} /><//>
    <p class=${`verdict ${stateGroup(run.state)}`}><strong>${sentence(run)}</strong>${run.message && run.reason !== "HTTP_STATUS" && html`${" "}<${Text} cut=${300}>${run.message}<//>`}</p>
    <${Waterfall} run=${run} />
    <${Attempts} run=${run} />
    <${Facts} items=${[
      ["Id", html`<code>${run.id}</code>`],
      ["Kind", run.kind.replace(/_/g, " ")],
      ["Late by", run.latenessMs !== null && length(run.latenessMs)],
      ["HTTP status", run.httpStatus],
      ["Next attempt", run.nextAttemptAt && html`<${When} at=${run.nextAttemptAt} />`],
      ["Result until", run.callbackDeadlineAt && html`<${When} at=${run.callbackDeadlineAt} />`],
      ["Covers", run.range && html`${run.range.count} occurrences until <${When} at=${run.range.until} />`],
      ["Follows", run.parentRunId && html`<a href=${at(`/runs/${run.parentRunId}`)}>the run that ended</a>`],
      ["Repeats", run.rerunOf && html`<a href=${at(`/runs/${run.rerunOf}`)}>an earlier run</a>`],
      ["Reported by", run.reportedBy && html`<${Text} cut=${80}>${run.reportedBy}<//>`],
      ["Repeated by", run.rerunBy && html`<a href=${at(`/runs/${run.rerunBy}`)}>a later run</a>`],
      ["Error group", run.errorGroupId && html`<a href=${at(`/errors/${run.errorGroupId}`)}>failures with the same cause</a>`],
      ["Kept until", run.expiresAt && html`<${When} at=${run.expiresAt} />`],
    ]} />
    ${run.answer && html`<h2>Answer</h2><${Source} value=${run.answer} />`}
    ${run.notes?.length > 0 && html`<h2>Notes</h2><ul>${run.notes.map((note) => html`<li><${Text} cut=${300}>${typeof note === "string" ? note : note.text}<//></li>`)}</ul>`}`;
}

/** Says in words why a run stands as it does: the reason's sentence, else the state's. */
export function sentence(run) {
  if (run.reason === "HTTP_STATUS" && run.httpStatus) return `The target answered ${run.httpStatus}.`;
  return (run.reason && run.reason !== "ON_TIME" ? REASONS[run.reason] : null) ?? STATES[run.state] ?? "";
}

function Verbs({ run, reload }) {
  const [open, setOpen] = useState("");
  const path = `/v1/runs/${run.id}`;
  const ended = run.status === "COMPLETED";
  const awaits = run.state === "ACK_RECVD" || run.state === "ACK_NOT_RECVD";
  if (!may("runs:write") || run.range || run.status === "SCHEDULED") return null;
  const rerun = async () => {
    const { body } = await request("POST", `${path}/rerun`, { body: {}, key: crypto.randomUUID() });
    tell("Started the run again.");
    go(at(`/runs/${body.runId ?? body.id}`));
  };
  const cancel = async () => {
    await request("POST", `${path}/cancel`, { body: {} });
    await reload();
    tell("Cancelled the run.");
  };
  return html`${ended && html`<${Action} key="rerun" kind="primary" act=${rerun}>Rerun<//><button type="button" aria-haspopup="dialog" onClick=${() => setOpen("edit")}>Edit and rerun</button>`}
    ${!ended && html`<${Action} key="cancel" kind="danger" act=${cancel}>Cancel run<//>`}
    ${awaits && html`<button type="button" aria-haspopup="dialog" onClick=${() => setOpen("report")}>Report result</button>`}
    <${Action} key="copy" act=${() => copy(`curl -H "Authorization: Bearer $TOKEN" ${actsFor.value ? `-H ${shellWord(`Sweephand-Tenant: ${actsFor.value}`)} ` : ""}${shellWord(location.origin + path)}`).then(() => tell("Copied the command."))}>Copy as curl<//>
    ${open === "edit" && html`<${EditAndRerun} run=${run} path=${path} onClose=${() => setOpen("")} />`}
    ${open === "report" && html`<${Report} path=${path} reload=${reload} onClose=${() => setOpen("")} />`}`;
}

function EditAndRerun({ run, path, onClose }) {
  const job = useAnswer(run.jobId ? `/v1/jobs/${run.jobId}?include=schedules` : `/v1/messages/${run.id}`);
  const [written, setPayload] = useState(/** @type {string | null} */ (null));
  const payload = written ?? payloadOf(job.data, run);
  const [problem, setProblem] = useState(null);
  const act = async () => {
    setProblem(null);
    let read;
    try {
      read = JSON.parse(payload);
    } catch (wrong) {
      setProblem({ status: 422, code: "INVALID_JSON", title: "Not JSON", detail: "The payload is not JSON.", errors: [{ field: "payload", reason: String(wrong.message) }], retryAfter: null });
      return;
    }
    try {
      const { body } = await request("POST", `${path}/rerun`, { body: { payload: read }, key: crypto.randomUUID() });
      go(at(`/runs/${body.runId ?? body.id}`));
      tell("Started the run again, with this payload.");
    } catch (thrown) {
      setProblem(thrown);
    }
  };
  return html`<${Dialog} title="Edit and rerun" onClose=${onClose}>
    <p>The new run sends this payload instead of the job's, this once. ${job.data ? "It begins as the job has it now." : job.problem ? "The job's own payload could not be read." : "Reading the job's payload …"}</p>
    <${Field} label="Payload (JSON)" name="payload" problem=${problem}><textarea rows="8" class="code" value=${payload} onInput=${(event) => setPayload(event.target.value)}></textarea><//>
    <${ProblemNote} problem=${problem} />
    <p class="actions"><${Action} kind="primary" act=${act}>Rerun<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

/** Returns the payload that the run's job would send now, as a text of JSON. */
function payloadOf(job, run) {
  const schedule = job?.schedules?.find((each) => each.id === run.scheduleId);
  return JSON.stringify(schedule?.payload ?? job?.action.payload ?? {}, null, 2);
}

function Report({ path, reload, onClose }) {
  const [message, setMessage] = useState("");
  const report = (success) => async () => {
    await request("PUT", `${path}/result`, { body: { success, ...(message && { message }) } });
    onClose();
    await reload();
    tell("Reported the result.");
  };
  return html`<${Dialog} title="Report result" onClose=${onClose}>
    <p>The run ends with this result, as if its target had reported it.</p>
    <${Field} label="Message"><input value=${message} maxlength="1000" onInput=${(event) => setMessage(event.target.value)} /><//>
    <p class="actions"><${Action} kind="primary" act=${report(true)}>Report success<//><${Action} kind="danger" act=${report(false)}>Report failure<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

// ---- Waterfall ------------------------------------------------------------------------------------------------------

/** Returns the phases of a run from planned to its end, in milliseconds: {title, from, to, group}. */
export function phases(run, at) {
  const ms = (text) => (text ? Date.parse(text) : null);
  const begun = ms(run.startedAt);
  const end = ms(run.finishedAt) ?? at;
  const found = [];
  const add = (title, from, to, group) => from !== null && to !== null && to >= from && found.push({ title, from, to, group });
  add("Planned", ms(run.plannedAt), ms(run.enqueuedAt) ?? begun ?? end, "planned");
  if (run.enqueuedAt) add("In the queue", Math.max(ms(run.enqueuedAt), Math.min(ms(run.plannedAt), begun ?? end)), begun ?? end, "queue");
  let before = null;
  for (const each of run.attempts ?? []) {
    const from = ms(each.startedAt);
    const to = ms(each.finishedAt) ?? end;
    if (before !== null && from - before > 50) add("Wait for the next attempt", before, from, "waits");
    add(`Attempt ${each.attempt}`, from, to, stateGroup(each.state));
    before = to;
  }
  if (["ACK_RECVD", "ACK_NOT_RECVD"].includes(run.state) || (before !== null && end - before > 1000)) add(run.status === "COMPLETED" ? "Until the end" : run.state === "RETRY_WAIT" ? "Wait for the next attempt" : "Awaits the result", before ?? begun ?? end, end, "waits");
  return found;
}

function Waterfall({ run }) {
  if (run.range || run.status === "SCHEDULED") return null;
  const found = phases(run, now());
  if (!found.length) return null;
  const first = Math.min(...found.map((each) => each.from));
  const span = Math.max(1, Math.max(...found.map((each) => each.to)) - first);
  const place = (each) => (element) => {
    if (!element) return;
    element.style.left = `${Math.min(100 - NARROWEST, ((each.from - first) / span) * 100)}%`;
    element.style.width = `${Math.max(NARROWEST, ((each.to - each.from) / span) * 100)}%`;
  };
  return html`<h2>Timeline <span class="faint">${length(span)} in all</span></h2><div class="scroll" role="region" aria-label="Timeline" tabindex="0"><table class="waterfall" role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Step</th><th scope="col" role="columnheader">Start</th><th scope="col" role="columnheader">Duration</th><th scope="col" role="columnheader" class="span">from ${clock(first)} to ${clock(first + span)}</th></tr></thead>
    <tbody role="rowgroup">${found.map((each) => html`<tr role="row"><th scope="row" role="rowheader">${each.title}</th><td role="cell">${clock(each.from)}</td><td role="cell" class="number">${length(each.to - each.from)}</td><td role="cell" class="span"><i class=${`bar-of ${each.group}`} ref=${place(each)}></i></td></tr>`)}</tbody></table></div>`;
}

function Attempts({ run }) {
  if (!run.attempts?.length) return null;
  return html`<h2>Attempts <span class="faint">${run.attempts.length} of ${run.maxAttempts} at most</span></h2>
    <ol class="attempts">${run.attempts.map((each) => html`<li key=${each.attempt + each.startedAt}><p><${State} state=${each.state} reason=${each.reason} /> <span class="faint">attempt ${each.attempt}</span> <${When} at=${each.startedAt} />${each.durationMs !== null && html` <span class="faint">took ${length(each.durationMs)}</span>`}${each.httpStatus && html` <span class="tag">HTTP ${each.httpStatus}</span>`}</p>
      ${each.message && html`<p><${Text} cut=${300}>${each.message}<//></p>`}
      ${each.answer && html`<details><summary>Answer</summary><${Source} value=${each.answer} /></details>`}</li>`)}</ol>`;
}
