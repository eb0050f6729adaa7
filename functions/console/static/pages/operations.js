// Operations (long work): their progress, with pause, resume and cancel.

import { html, useEffect, useState } from "../vendor.js";
import { may, request, useAnswer, useList } from "../api.js";
import { Action, Empty, Head, Loaded, More, News, State, Table, Text, When, at } from "../parts.js";

const EVERY_S = 15;
const OPEN_EVERY_S = 3;
const KINDS = { redrive: "Run failed runs again", delete_jobs: "Delete jobs", delete_collection: "Delete a collection", purge_tenant: "Delete a tenant", export_runs: "Write runs into a file", switch_jobs: "Switch jobs" };
/** The scope that pauses, resumes and cancels work of each kind. */
const SCOPES = { redrive: "errors:edit", delete_jobs: "jobs:write", switch_jobs: "jobs:write", delete_collection: "jobs:write", purge_tenant: "provider:admin", export_runs: "jobs:read" };
/** Kinds that cannot be cancelled: half of them would be neither the old state nor the new one. */
const FOR_GOOD = new Set(["delete_collection", "purge_tenant"]);
const ENDED = new Set(["DONE", "FAILED", "CANCELLED"]);

const kindWord = (kind) => KINDS[kind] ?? kind.replace(/_/g, " ");

function Progress({ operation }) {
  const { done, total, failed, waitsFor } = operation.progress;
  const text = `${done.toLocaleString("en-GB")}${total === null ? "" : ` of ${total.toLocaleString("en-GB")}`}${failed ? `, ${failed} failed` : ""}`;
  return html`<span class="progress"><progress aria-label=${kindWord(operation.kind)} value=${total === null ? undefined : done} max=${total || 1}></progress> ${text}${waitsFor && html`${" "}<span class="faint"><${Text} cut=${120}>${waitsFor}<//></span>`}</span>`;
}

function Verbs({ operation, reload }) {
  const post = (verb) => async () => {
    await request("POST", `/v1/operations/${operation.id}/${verb}`, { body: {} });
    await reload();
  };
  if (operation.state === "DONE" || operation.state === "CANCELLED" || !may(SCOPES[operation.kind])) return null;
  return html`<span class="actions">${operation.state === "RUNNING" && html`<${Action} key="pause" act=${post("pause")}>Pause<//>`}${operation.state !== "RUNNING" && html`<${Action} key="resume" act=${post("resume")}>Resume<//>`}${!FOR_GOOD.has(operation.kind) && html`<${Action} key="cancel" kind="danger" act=${post("cancel")}>Cancel<//>`}</span>`;
}

/** Keeps an operation fresh until it has ended. */
function useOperation(id) {
  const [ended, setEnded] = useState(false);
  const answer = useAnswer(`/v1/operations/${encodeURIComponent(id)}`, ended ? EVERY_S : OPEN_EVERY_S);
  useEffect(() => setEnded(ENDED.has(answer.data?.state)), [answer.data?.state]);
  return answer;
}

/** Shows an operation in one line with its progress bar. children: further content for the line. */
export function OperationLine({ id, onEnd, children }) {
  const answer = useOperation(id);
  const operation = answer.data;
  const ended = operation && ENDED.has(operation.state);
  useEffect(() => {
    if (ended) onEnd?.();
  }, [ended]);
  return operation && html`<div class="card line" role="status"><a href=${at(`/operations/${id}`)}>${kindWord(operation.kind)}</a> <${State} state=${operation.state} /> <${Progress} operation=${operation} />${operation.cause && html` <${Text} cut=${200}>${operation.cause}<//>`} ${children?.(operation)}<${Verbs} operation=${operation} reload=${answer.reload} /></div>`;
}

/** Shows how many runs of a group have failed again since they were run again. */
export function FailedAgain({ runs, since }) {
  const again = (runs.items ?? []).filter((run) => run.open && run.seenAt > since).length;
  return again > 0 && html`<strong class="state failed">${again}${runs.more && again === runs.items.length ? " or more" : ""} failed again since</strong>`;
}

function AgainInGroup({ group, since }) {
  const runs = useList(`/v1/errors/${group}/runs?limit=50`, EVERY_S);
  return html`<${FailedAgain} runs=${runs} since=${since} /> <a href=${at(`/errors/${group}`)}>View the group</a>`;
}

export function Operations() {
  const list = useList("/v1/operations?limit=50", EVERY_S, (each) => each.id);
  return html`<${Head} title="Operations" lead="Long work, newest first, for 30 days after its end" />
    <${Loaded} answer=${list} what="operations">${list.items?.length ? html`<${News} list=${list} noun="operation" /><${Table} label="Operations" keyOf=${(each) => each.id} rows=${list.items} href columns=${[
        ["Operation", (each) => html`<a href=${at(`/operations/${each.id}`)}>${kindWord(each.kind)}</a>`, "main"],
        ["State", (each) => html`<${State} state=${each.state} />`],
        ["Progress", (each) => html`<${Progress} operation=${each} />`],
        ["By", (each) => html`<${Text} cut=${40}>${each.actor ?? "Sweephand"}<//>`, "wide"],
        ["Began", (each) => html`<${When} at=${each.startedAt} />`],
        ["", (each) => html`<${Verbs} operation=${each} reload=${list.reload} />`],
      ]} /><${More} list=${list} />` : list.items && html`<${Empty} title="No operations yet"><p>Operations on many runs or jobs appear here, with their progress.</p><//>`}<//>`;
}

export function OperationPage({ id }) {
  const answer = useOperation(id);
  const operation = answer.data;
  return html`<${Loaded} page answer=${answer} what="the operation">${operation && html`
    <${Head} title=${kindWord(operation.kind)} back=${["Operations", at("/operations")]} lead=${html`<${State} state=${operation.state} /> <span class="faint">begun</span> <${When} at=${operation.startedAt} /> <span class="faint">by</span> <${Text}>${operation.actor ?? "Sweephand"}<//>`}><${Verbs} operation=${operation} reload=${answer.reload} /><//>
    <p><${Progress} operation=${operation} />${operation.kind === "redrive" && operation.request.group && html` <${AgainInGroup} group=${operation.request.group} since=${operation.startedAt} />`}</p>${operation.cause && html`<p class="verdict failed"><${Text} cut=${300}>${operation.cause}<//></p>`}
    ${operation.result?.link?.url && html`<p><a class="button primary" href=${operation.result.link.url} target="_blank" rel="noopener">Download file</a></p>`}
    ${(operation.result?.failures ?? []).length > 0 && html`<h2>Failures</h2><ul>${operation.result.failures.map((each) => html`<li><${Text} cut=${300}>${typeof each === "string" ? each : JSON.stringify(each)}<//></li>`)}</ul>`}`}<//>`;
}
