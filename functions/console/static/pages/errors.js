// Failed runs in groups: their causes, notes, running them again at a rate, and archiving with undo.

import { html, useState } from "../vendor.js";
import { may, request, useAnswer, useList, withQuery } from "../api.js";
import { Action, Chips, Confirm, Empty, Facts, Field, Head, Loaded, More, News, State, Table, Text, When, at, count, tell, useQuery } from "../parts.js";
import { JobOf, jobNameOf, sentence } from "./runs.js";
import { FailedAgain, OperationLine } from "./operations.js";

const EVERY_S = 30;
const STATES = [["", "Open"], ["ARCHIVED", "Archived"], ["RESOLVED", "Resolved"]];

const countOf = (group) => `${group.count.toLocaleString("en-GB")}${group.countIsLeast ? " or more" : ""}`;

/** Asks for confirmation to run many failed runs again: a dry run gives the number, which becomes expectedCount. */
function Redrive({ chosen, what, onClose, onBegun }) {
  const [rate, setRate] = useState("60");
  const send = (body) => request("POST", "/v1/errors:redrive", { body: { ...chosen, ...body } }).then((answer) => answer.body);
  const act = async (number) => {
    const { operation } = await send({ expectedCount: number, ratePerMinute: Number(rate) });
    tell(`Started to run ${count(number, "failed run")} again.`);
    onBegun(operation);
  };
  return html`<${Confirm} title="Run failed runs again" onClose=${onClose} count=${() => send({ dryRun: true }).then((body) => body.count)} word=${(number) => `Run ${count(number, "run")} again`} act=${act}
    consequence=${(number) => (number === 0 ? "There is nothing to run again." : `Each of the ${number === null ? "…" : number.toLocaleString("en-GB")} open failed runs of ${what} starts once more, as its job is now. Runs that fail after this request are not among them.`)}>
    <${Field} label="Runs a minute"><input type="number" min="1" max="6000" value=${rate} onInput=${(event) => setRate(event.target.value)} /><//><//>`;
}

export function Errors() {
  const [query, change] = useQuery();
  const filters = Object.fromEntries(["jobId", "collection", "tag", "resourceId"].filter((name) => query[name]).map((name) => [name, query[name]]));
  const list = useList(withQuery("/v1/errors", { ...filters, state: query.state, limit: 50 }), EVERY_S, (group) => group.id);
  const [open, setOpen] = useState(false);
  const [begun, setBegun] = useState(null);
  return html`<${Head} title="Errors" lead="Failed runs that are not resolved, in groups of one cause">
      ${may("errors:edit") && !query.state && list.items?.length > 0 && html`<button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen(true)}>Run all open runs again</button>`}<//>
    <div class="filters"><${Chips} label="State" options=${STATES} value=${query.state} onChange=${(state) => change({ state })} />
      ${Object.keys(filters).map((name) => html`<button type="button" class="tag" title="Remove this filter" onClick=${() => change({ [name]: "" })}>${name}: <${Text} cut=${24}>${filters[name]}<//> ✕</button>`)}</div>
    ${begun && html`<${OperationLine} id=${begun} onEnd=${list.reload} />`}
    <${Loaded} answer=${list} what="errors">${list.items?.length ? html`<${News} list=${list} noun="group" /><${Table} label="Errors" keyOf=${(group) => group.id} rows=${list.items} href columns=${[
        ["Job", (group) => html`<a href=${at(`/errors/${group.id}`)}><${Text} cut=${60}>${jobNameOf(group)}<//></a>`, "main"],
        ["Failed", (group) => countOf(group), "number"],
        ["Why", (group) => html`<${State} state=${group.runState} /> <${Text} cut=${90}>${group.lastMessage ?? group.message}<//>`, "whole"],
        ["Last", (group) => html`<${When} at=${group.lastSeenAt} />`],
        ["First", (group) => html`<${When} at=${group.firstSeenAt} />`, "wide"],
        ["Notes", (group) => group.notes.length || "", "number wide"],
      ]} /><${More} list=${list} />` : list.items && html`<${Empty} title=${query.state || Object.keys(filters).length ? "No group matches" : "Nothing is open"}><p>Runs that fail for good appear here, in groups.</p><//>`}<//>
    ${open && html`<${Redrive} chosen=${{ filter: filters }} what=${Object.keys(filters).length ? "the groups shown" : "all open groups"} onClose=${() => setOpen(false)} onBegun=${(operation) => setBegun(operation?.id)} />`}`;
}

export function ErrorGroup({ id }) {
  const path = `/v1/errors/${encodeURIComponent(id)}`;
  const answer = useAnswer(path, EVERY_S);
  return html`<${Loaded} page answer=${answer} what="the group" missing="If a run has just failed, its group appears here in a moment.">${answer.data && html`<${Shown} group=${answer.data} path=${path} reload=${answer.reload} />`}<//>`;
}

function Shown({ group, path, reload }) {
  const runs = useList(`${path}/runs?limit=50`, EVERY_S, (run) => run.runId);
  const [open, setOpen] = useState(false);
  const [begun, setBegun] = useState(null);
  const [note, setNote] = useState("");
  const restore = async () => {
    await request("POST", `${path}/restore`, { body: {} });
    await reload();
  };
  const archive = async () => {
    await request("POST", `${path}/archive`, { body: {} });
    await reload();
    tell(`Archived the group of ${count(group.count, "run")}. The next failure opens it again.`, restore);
  };
  const addNote = async () => {
    await request("POST", `${path}/notes`, { body: { text: note } });
    setNote("");
    await reload();
  };
  const edit = may("errors:edit");
  const redrive = begun ?? runs.items?.find((run) => run.operationId)?.operationId;
  return html`<${Head} title=${html`<${Text} cut=${80}>${jobNameOf(group)}<//>${group.count ? ` failed ${group.count === 1 && !group.countIsLeast ? "once" : `${countOf(group)} times`}` : ": no open failures"}`} plain=${`Errors of ${jobNameOf(group).slice(0, 40)}`} back=${["Errors", at("/errors")]}
      lead=${html`<${State} state=${group.state} /> <span class="faint">last</span> <${When} at=${group.lastSeenAt} />`}>
      ${edit && group.state === "OPEN" && html`<button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen(true)}>Run ${countOf(group)} ${group.count === 1 ? "run" : "runs"} again</button><${Action} key="archive" act=${archive}>Archive group<//>`}
      ${edit && group.state === "ARCHIVED" && html`<${Action} key="restore" kind="primary" act=${restore}>Restore group<//>`}<//>
    <p class="verdict failed"><strong>${sentence({ ...group, state: group.runState })}</strong> <${Text} cut=${300}>${group.lastMessage ?? group.message}<//></p>
    ${redrive && html`<${OperationLine} key=${redrive} id=${redrive} onEnd=${() => { reload(); runs.reload(); }}>${(operation) => html`<${FailedAgain} runs=${runs} since=${operation.startedAt} />`}<//>`}
    <${Facts} items=${[
      ["Job", html`<${JobOf} of=${group} cut=${60} />`],
      ["Failed action", group.action],
      ["First", html`<${When} at=${group.firstSeenAt} />`],
      ["Last run", html`<a href=${at(`/runs/${group.lastRunId}`)}>open it</a>`],
      ["Kept until", group.expiresAt && html`<${When} at=${group.expiresAt} />`],
      ["Archived", group.archived && html`<${When} at=${group.archived.at} /> by <${Text}>${group.archived.by ?? "Sweephand"}<//>${group.archived.reason && html`: <${Text} cut=${200}>${group.archived.reason}<//>`}`],
    ]} />
    <h2>Notes</h2>
    ${group.notes.length > 0 && html`<ol class="log">${group.notes.map((each) => html`<li><p><strong><${Text}>${each.by ?? each.actor ?? ""}<//></strong> <${When} at=${each.at} /></p><p><${Text} cut=${300}>${each.text}<//></p></li>`)}</ol>`}
    ${edit && html`<div class="filters"><input aria-label="Note" placeholder="Write a note" maxlength="1000" value=${note} onInput=${(event) => setNote(event.target.value)} /><${Action} disabled=${!note.trim()} act=${addNote}>Add note<//></div>`}
    <h2>Failed runs</h2>
    <${Loaded} answer=${runs} what="the runs">${runs.items && html`<${News} list=${runs} noun="failed run" /><${Table} label="Failed runs" keyOf=${(run) => run.runId} rows=${runs.items} href columns=${[
        ["Run", (run) => html`<a href=${at(`/runs/${run.runId}`)}><code>${run.runId.slice(-12)}</code></a>`, "main"],
        ["Failed", (run) => html`<${When} at=${run.seenAt} />`],
        ["Now", (run) => run.rerunBy ? html`<a href=${at(`/runs/${run.rerunBy}`)}>run again</a> by <${Text} cut=${40}>${run.actor ?? ""}<//>` : run.archived ? "archived" : run.open ? "open" : "resolved"],
      ]} /><${More} list=${runs} />`}<//>
    ${open && html`<${Redrive} chosen=${{ group: group.id }} what="this group" onClose=${() => setOpen(false)} onBegun=${(operation) => setBegun(operation?.id)} />`}`;
}
