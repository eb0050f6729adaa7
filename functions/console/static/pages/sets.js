// Job sets: lists of jobs that a program applies as a whole; what others changed since, and how their runs do.

import { html, useState } from "../vendor.js";
import { may, request, useAnswer, useList, withQuery } from "../api.js";
import { Confirm, Empty, Facts, Head, Loaded, More, Shape, Table, Text, When, at, count, go, tell } from "../parts.js";

const EVERY_S = 60;
const STANDS = { applied: ["ok", "as applied"], changed: ["missed", "changed by others"], deleted: ["failed", "deleted by others"] };
const placeOf = (name) => `/v1/job-sets/${encodeURIComponent(name)}`;

export function JobSets() {
  const list = useList("/v1/job-sets?limit=100", EVERY_S);
  return html`<${Head} title="Job sets" lead="Lists of jobs that a program applies as a whole" />
    <${Loaded} answer=${list} what="job sets">${list.items?.length ? html`<${Table} label="Job sets" keyOf=${(each) => each.name} rows=${list.items} href columns=${[
        ["Name", (each) => html`<a href=${at(`/job-sets/${encodeURIComponent(each.name)}`)}><${Text} cut=${60}>${each.name}<//></a>`, "main"],
        ["Last changed its jobs", (each) => html`<${When} at=${each.appliedAt} />`],
        ["By", (each) => html`<${Text} cut=${40}>${each.appliedBy ?? ""}<//>`, "wide"],
      ]} /><${More} list=${list} />` : list.items && html`<${Empty} title="No job sets yet"><p>A program that owns its jobs applies them as a set, with <code>sweephand sets apply</code> or the API.</p><//>`}<//>`;
}

export function JobSet({ id }) {
  const answer = useAnswer(`${placeOf(id)}?include=figures`, EVERY_S);
  const [open, setOpen] = useState(false);
  const [token, setToken] = useState("");
  const set = answer.data;
  const plan = async () => {
    const { body } = await request("DELETE", withQuery(placeOf(id), { plan: true }));
    setToken(body.token);
    return body.deleted.length;
  };
  const remove = async (number) => {
    const { body } = await request("DELETE", withQuery(placeOf(id), { token, allowDeletes: number }));
    if (body.remaining) {
      tell(`Deleted ${count(body.deleted.length, "job")}; ${body.remaining} are left. Delete the set again.`);
      await answer.reload();
      return;
    }
    go(at("/job-sets"));
    tell(`Deleted the job set with ${count(number, "job")}.`);
  };
  return html`<${Loaded} page answer=${answer} what="the job set">${set && html`
    <${Head} title=${html`<${Text} cut=${80}>${set.name}<//>`} plain=${set.name} back=${["Job sets", at("/job-sets")]} lead=${count(set.jobs.length, "job")}>
      ${may("jobs:write") && html`<button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen(true)}>Delete job set</button>`}<//>
    <${Drift} jobs=${set.jobs} />
    <${Facts} items=${[["Last changed its jobs", html`<${When} at=${set.appliedAt} />${set.appliedBy && html` by <${Text} cut=${60}>${set.appliedBy}<//>`}`], ...figuresOf(set.figures)]} />
    <h2>Jobs</h2>${set.jobs.length > 0 && html`<${Table} label="Jobs of the set" keyOf=${(each) => each.key} rows=${set.jobs} href columns=${[
      ["Key", (each) => html`<a href=${at(`/jobs/${each.jobId}`)}><${Text} cut=${60}>${each.key}<//></a>`, "main"],
      ["State", (each) => html`<span class=${`state ${STANDS[each.state][0]}`}><${Shape} group=${STANDS[each.state][0]} />${STANDS[each.state][1]}</span>`],
      ["Changed by", (each) => changesOf(each)],
    ]} />`}
    ${open && html`<${Confirm} danger title="Delete job set" onClose=${() => setOpen(false)} count=${plan} word=${(number) => `Delete ${count(number, "job")}`} consequence=${(number) => `${number === null ? "…" : count(number, "job")} of the set will be deleted with their schedules and open runs. A program that applies the set makes them anew.`} act=${remove} />`}`}<//>`;
}

function Drift({ jobs }) {
  const others = jobs.filter((each) => each.state !== "applied").length;
  return html`<p class=${`verdict ${others ? "missed" : "ok"}`}>${others ? `${count(others, "job")} ${others === 1 ? "is" : "are"} not as the set has it any more: others changed or deleted ${others === 1 ? "it" : "them"}.` : "All jobs are as the set defines them."}</p>`;
}

function changesOf(each) {
  const [newest] = each.changes ?? [];
  if (!newest) return "";
  return html`<a href=${`${at(`/jobs/${each.jobId}`)}#changes`}>${count(each.changes.length, "change")}</a>, last <${When} at=${newest.at} /> by <${Text} cut=${40}>${newest.actor ?? "Sweephand"}<//>`;
}

/** Returns the figures of the latest runs as facts. */
function figuresOf(figures) {
  if (!figures) return [];
  const seconds = ({ p50, p99 }) => (p50 === null ? null : `${p50} s at the median, ${p99} s at the 99th percentile`);
  return [["Runs", html`${figures.runs.toLocaleString("en-GB")} since <${When} at=${figures.from} />${figures.complete ? "" : ", not all were read"}`], ["Failed", figures.failed], ["Tried again", figures.retried], ["Late by", seconds(figures.latenessSeconds)], ["Planned to end", seconds(figures.criticalSeconds)]];
}
