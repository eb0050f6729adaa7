// Redirects: failed runs of one job are run again by another.

import { html, useEffect, useState } from "../vendor.js";
import { may, request, useAnswer, useList, withQuery } from "../api.js";
import { Action, Confirm, Dialog, Empty, Field, Head, Loaded, More, ProblemNote, Table, Text, When, at, tell } from "../parts.js";

const EVERY_S = 60;
const A_PAGE = 20;
const TYPING_MS = 250;

export function Redirects() {
  const list = useList(`/v1/error-redirects?limit=${A_PAGE}`, EVERY_S);
  const [open, setOpen] = useState(null);
  const close = () => setOpen(null);
  const end = async () => {
    await request("DELETE", `/v1/error-redirects/${open.from}`);
    await list.reload();
    tell("Ended the redirect.");
  };
  return html`<${Head} title="Redirects" lead="Failed runs of one job that another job runs again">${may("errors:edit") && html`<button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen({})}>Create redirect</button>`}<//>
    <${Loaded} answer=${list} what="redirects">${list.items?.length ? html`<${Table} label="Redirects" keyOf=${(each) => each.from} rows=${list.items} columns=${[
        ["Failed runs of", (each) => html`<${JobName} id=${each.from} />`, "main"],
        ["are run again by", (each) => html`<${JobName} id=${each.to} />`, "main"],
        ["Since", (each) => html`<${When} at=${each.createdAt} />`],
        ["By", (each) => html`<${Text} cut=${40}>${each.actor ?? ""}<//>`, "wide"],
        ["", (each) => may("errors:edit") && html`<button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen(each)}>End redirect</button>`],
      ]} /><${More} list=${list} />` : list.items && html`<${Empty} title="No redirects yet"><p>Where a job's failed runs cannot succeed any more, another job can run them again.</p><//>`}<//>
    ${open && !open.from && html`<${CreateRedirect} onClose=${close} onMade=${list.reload} />`}
    ${open?.from && html`<${Confirm} danger title="End redirect" onClose=${close} word=${() => "End redirect"} consequence=${() => html`Failed runs of <${JobName} id=${open.from} /> are run again by the job itself.`} act=${end} />`}`;
}

/** Shows a job by its name, as a link. */
function JobName({ id }) {
  const { data, problem } = useAnswer(`/v1/jobs/${id}`);
  return html`<a href=${at(`/jobs/${id}`)}>${data ? html`<${Text} cut=${60}>${data.name}<//>` : html`<code>${id.slice(0, 8)}</code>`}</a>${problem?.status === 404 && html`${" "}<span class="faint">deleted</span>`}`;
}

function CreateRedirect({ onClose, onMade }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [problem, setProblem] = useState(null);
  const act = async () => {
    setProblem(null);
    try {
      await request("PUT", `/v1/error-redirects/${encodeURIComponent(from)}`, { body: { to } });
    } catch (thrown) {
      setProblem(thrown);
      return;
    }
    onClose();
    await onMade();
    tell("Created the redirect.");
  };
  return html`<${Dialog} title="Create redirect" onClose=${onClose}>
    <p>When failed runs of the first job are run again, the second one runs them, with their payloads.</p>
    <${JobChoice} label="Job whose runs failed" name="job" problem=${problem} value=${from} onChange=${setFrom} />
    <${JobChoice} label="Job that runs them again" name="to" problem=${problem} value=${to} onChange=${setTo} />
    <${ProblemNote} problem=${problem} />
    <p class="actions"><${Action} kind="primary" disabled=${!from || !to} act=${act}>Create redirect<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

/** Shows a field for a job's name or id, which offers the first jobs with a matching name. */
function JobChoice({ label, name, problem, value, onChange }) {
  const [search, setSearch] = useState("");
  const [text, setText] = useState("");
  const found = useAnswer(withQuery("/v1/jobs", { search, limit: 10 }));
  const jobs = found.data?.items ?? [];
  useEffect(() => {
    const timer = setTimeout(() => setSearch(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const named = jobs.filter((job) => job.name === text.trim());
    onChange(named.length === 1 ? named[0].id : jobs.some((job) => job.id === text.trim()) || /^[0-9a-f-]{36}$/.test(text.trim()) ? text.trim() : "");
  }, [text, found.data]);
  const list = `jobs-of-${name}`;
  return html`<${Field} label=${label} name=${name} problem=${problem} hint=${text && !value ? "Its full name, or its id if several jobs share the name." : ""}><input list=${list} autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} /><datalist id=${list}>${jobs.map((job) => html`<option value=${job.name}>${job.id}</option>`)}</datalist><//>`;
}
