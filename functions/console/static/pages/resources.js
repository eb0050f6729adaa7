// Collections, calendars and flow keys: a list and a page for each.

import { html, useState } from "../vendor.js";
import { may, request, useAnswer, useList } from "../api.js";
import { Action, Confirm, Dialog, Empty, Facts, Head, Loaded, More, Source, State, Table, Text, When, at, copy, count, go, length, tell } from "../parts.js";
import { EditResource } from "./forms.js";

const EVERY_S = 30;
const LIVE_EVERY_S = 5;
const read = (members, resource) => Object.fromEntries(members.map((name) => [name, resource[name]]).filter(([, value]) => value !== null && value !== undefined && !(Array.isArray(value) && !value.length)));

const KINDS = {
  collections: {
    one: "collection", title: "Collections", lead: "Groups of jobs with quotas, defaults and a switch", members: ["quota", "retention", "events", "defaults", "callbackTimeoutSeconds", "redirects", "flowKey"], change: "PATCH",
    example: {},
    columns: [["State", (each) => html`<${State} state=${each.state} />`], ["Jobs", (each) => each.jobCount, "number"], ["Maximum jobs", (each) => each.quota?.maxJobs ?? html`<span class="faint">no limit</span>`, "number"], ["Changed", (each) => html`<${When} at=${each.modifiedAt} />`, "wide"]],
    facts: (each) => [["State", html`<${State} state=${each.state} />`], ["Jobs", html`<a href=${at("/jobs", { collection: each.name })}>${count(each.jobCount, "job")}</a>`], ["API", each.facade], ["Events", each.events]],
    verbs: (each) => (each.state === "ENABLED" ? ["disable", "Disable", `Its ${count(each.jobCount, "job")} stop: each occurrence that falls due meanwhile is skipped.`] : each.state === "DISABLED" ? ["enable", "Enable", `Its ${count(each.jobCount, "job")} run again from now on.`] : null),
    parts: (each) => html`<${SigningKeys} collection=${each.name} />`,
  },
  calendars: {
    one: "calendar", title: "Calendars", lead: "Days and hours that schedules exclude, include or roll over", members: ["description", "timezone", "dates", "ranges", "weekly"], change: "PUT",
    example: { dates: ["12-25", "12-26"], weekly: [{ days: ["SAT", "SUN"] }] },
    columns: [["Version", (each) => each.version, "number"], ["Used by", (each) => count(each.usedBy, "job"), "number"], ["Description", (each) => html`<${Text} cut=${80}>${each.description ?? ""}<//>`, "wide"], ["Changed", (each) => html`<${When} at=${each.modifiedAt} />`]],
    facts: (each) => [["Version", each.version], ["Used by", count(each.usedBy, "job")], ["Zone", each.timezone], ["Schedules", each.replanning && "some still go by an earlier version"]],
    parts: (each) => html`<${Versions} calendar=${each.name} />`,
  },
  "flow-keys": {
    one: "flow key", title: "Flow keys", lead: "Limits that calls of several jobs share", members: ["description", "rate", "parallelism", "circuit"], change: "PATCH",
    example: { rate: { limit: 60, periodSeconds: 60 }, parallelism: 5 },
    columns: [["State", (each) => html`<${State} state=${each.state} />`], ["Rate", (each) => rateOf(each.rate)], ["At once", (each) => each.parallelism ?? html`<span class="faint">no limit</span>`, "number"], ["Used by", (each) => each.usedBy, "number"]],
    facts: (each) => [["State", html`<${State} state=${each.state} />`], ["Rate", rateOf(each.rate)], ["Calls at once", each.parallelism], ["Used by", `${each.usedBy} jobs and collections`], ["Pause", each.pause && html`since <${When} at=${each.pause.since} /> <${Text} cut=${200}>${each.pause.note ?? ""}<//>`]],
    verbs: (each) => (each.state === "ACTIVE" ? ["pause", "Pause", "No call of its jobs begins until somebody resumes it; runs wait in line."] : ["resume", "Resume", "Calls begin again, at its rate."]),
    parts: (each) => html`<${Live} live=${each.live} />`, everyS: LIVE_EVERY_S,
  },
};

const rateOf = (rate) => (rate ? `${rate.limit} in ${length(rate.periodSeconds * 1000)}` : html`<span class="faint">no limit</span>`);

const list = (name) => () => html`<${ResourceList} name=${name} />`;
const page = (name) => ({ id }) => html`<${ResourcePage} name=${name} id=${id} />`;
export const [Collections, Calendars, FlowKeys] = Object.keys(KINDS).map(list);
export const [Collection, Calendar, FlowKey] = Object.keys(KINDS).map(page);

function ResourceList({ name }) {
  const kind = KINDS[name];
  const found = useList(`/v1/${name}?limit=100`, EVERY_S);
  const [open, setOpen] = useState(false);
  const create = may("jobs:write") && html`<button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen(true)}>Create ${kind.one}</button>`;
  return html`<${Head} title=${kind.title} lead=${kind.lead}>${create}<//>
    <${Loaded} answer=${found} what=${kind.title.toLowerCase()}>${found.items?.length ? html`<${Table} label=${kind.title} keyOf=${(each) => each.name} rows=${found.items} href columns=${[["Name", (each) => html`<a href=${at(`/${name}/${encodeURIComponent(each.name)}`)}><${Text} cut=${60}>${each.name}<//></a>`, "main"], ...kind.columns]} /><${More} list=${found} />`
      : found.items && html`<${Empty} title=${`No ${kind.title.toLowerCase()} yet`}><p>${kind.lead}.</p><//>`}<//>
    ${open && html`<${EditResource} name=${name} kind=${kind} members=${kind.example} onClose=${() => setOpen(false)} />`}`;
}

function ResourcePage({ name, id }) {
  const kind = KINDS[name];
  const path = `/v1/${name}/${encodeURIComponent(id)}`;
  const answer = useAnswer(path, kind.everyS ?? EVERY_S);
  const [open, setOpen] = useState("");
  const each = answer.data;
  const verb = each && kind.verbs?.(each);
  const close = () => setOpen("");
  return html`<${Loaded} page answer=${answer} what=${`the ${kind.one}`}>${each && html`
    <${Head} title=${html`<${Text} cut=${80}>${each.name}<//>`} plain=${each.name} back=${[kind.title, at(`/${name}`)]} lead=${each.description && html`<${Text} cut=${200}>${each.description}<//>`}>
      ${may("jobs:write") && html`${verb && html`<button type="button" aria-haspopup="dialog" onClick=${() => setOpen("verb")}>${verb[1]} ${kind.one}</button>`}
        <button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen("edit")}>Edit ${kind.one}</button><button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen("delete")}>Delete ${kind.one}</button>`}<//>
    <${Facts} items=${[...kind.facts(each), ["Created", html`<${When} at=${each.createdAt} />`], ["Changed", html`<${When} at=${each.modifiedAt} />${each.modifiedBy && html` by <${Text}>${each.modifiedBy}<//>`}`]]} />
    ${kind.parts?.(each)}
    <h2>Definition</h2><${Source} value=${read(kind.members, each)} />
    ${open === "edit" && html`<${EditResource} name=${name} kind=${kind} resource=${each} members=${read(kind.members, each)} etag=${answer.etag} onClose=${close} onDone=${answer.reload} />`}
    ${open === "verb" && html`<${Confirm} title=${`${verb[1]} ${kind.one}`} consequence=${() => verb[2]} word=${() => `${verb[1]} ${kind.one}`} onClose=${close} act=${async () => { await request("POST", `${path}/${verb[0]}`, { body: {} }); await answer.reload(); tell(`${verb[1]}d 1 ${kind.one}.`); }} />`}
    ${open === "delete" && html`<${Confirm} danger title=${`Delete ${kind.one}`} consequence=${() => "It is deleted only if nothing uses it; otherwise the API says what does."} word=${() => `Delete ${kind.one}`} onClose=${close} act=${async () => { await request("DELETE", path); go(at(`/${name}`)); tell(`Deleted the ${kind.one}.`); }} />`}`}<//>`;
}

function Versions({ calendar }) {
  const path = `/v1/calendars/${encodeURIComponent(calendar)}/versions`;
  const versions = useList(`${path}?limit=20`);
  const [shown, setShown] = useState(null);
  const one = useAnswer(shown === null ? null : `${path}/${shown}`);
  return html`<h2>Versions</h2><${Loaded} answer=${versions} what="versions">${versions.items && html`<${Table} label="Versions" keyOf=${(each) => each.version} rows=${versions.items} columns=${[["Version", (each) => html`<button type="button" class="quiet" onClick=${() => setShown(each.version)}>Show version ${each.version}</button>`], ["Made", (each) => html`<${When} at=${each.createdAt} />`], ["By", (each) => html`<${Text}>${each.actor ?? "Sweephand"}<//>`]]} /><${More} list=${versions} />`}<//>
    ${one.data && html`<h2>Version ${one.data.version}</h2><${Source} value=${read(["description", "timezone", "dates", "ranges", "weekly"], one.data)} />`}`;
}

function Live({ live }) {
  return html`<h2>Now</h2><${Facts} items=${[["Waiting", `${live.waiting}${live.waiting >= 10000 ? " or more" : ""}`], ["Running", live.running], ["Next call", live.nextCallAt && html`<${When} at=${live.nextCallAt} />`]]} />
    ${live.circuits.length > 0 && html`<${Table} label="Circuits" keyOf=${(each) => each.id} rows=${live.circuits} columns=${[["Target", (each) => html`<${Text} cut=${90}>${each.target}<//>`, "main"], ["Circuit", (each) => (each.state === "OPEN" ? html`<${State} state="OPEN" />` : html`<span class="faint">closed</span>`)], ["Failures in a row", (each) => each.failures, "number"], ["Since", (each) => html`<${When} at=${each.since} />`]]} />`}`;
}

function SigningKeys({ collection }) {
  const path = `/v1/collections/${encodeURIComponent(collection)}/signing-keys`;
  const keys = useList(path);
  const [made, setMade] = useState(null);
  const [going, setGoing] = useState("");
  const create = async () => {
    const { body } = await request("POST", path, { body: {}, key: crypto.randomUUID() });
    setMade(body);
    await keys.reload();
  };
  const remove = async () => {
    await request("DELETE", `${path}/${going}`);
    await keys.reload();
    tell("Deleted the signing key.");
  };
  return html`<h2>Signing keys</h2><${Loaded} answer=${keys} what="signing keys">${keys.items?.length > 0 && html`<${Table} label="Signing keys" keyOf=${(each) => each.id} rows=${keys.items} columns=${[["Key", (each) => html`<code>${each.id}</code>`, "main"], ["Age", (each) => html`<${When} at=${each.createdAt} />`], ["By", (each) => html`<${Text}>${each.createdBy ?? ""}<//>`], ["", (each) => may("admin") && html`<button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setGoing(each.id)}>Delete key</button>`]]} />`}
    ${keys.items?.length === 0 && html`<p class="faint">Calls of its jobs are not signed.</p>`}<//>
    ${may("admin") && html`<p class="more-left"><${Action} act=${create}>Create signing key<//></p>`}
    ${going && html`<${Confirm} danger title="Delete signing key" word=${() => "Delete key"} consequence=${() => html`Calls are no longer signed with the key <code>${going}</code>. Receivers that know no other key will reject them.`} onClose=${() => setGoing("")} act=${remove} />`}
    ${made && html`<${Secret} title="The new signing key" names=${[["Key", made.id], ["Secret", made.secret]]} onClose=${() => setMade(null)} />`}`;
}

/** Shows a secret this once, with a way to copy it; it goes when the reader says that it is stored. */
export function Secret({ title, names, onClose }) {
  const [copied, setCopied] = useState(false);
  return html`<${Dialog} title=${title} onClose=${null}>
    <p>The secret is shown this once. Store it now.</p>
    <${Facts} items=${names.map(([name, value]) => [name, html`<code>${value}</code>`])} />
    <p class="actions"><${Action} act=${() => copy(names.at(-1)[1]).then(() => setCopied(true))}>Copy secret<//><span role="status">${copied && "Copied."}</span><button type="button" class="primary" onClick=${onClose}>I stored it</button></p><//>`;
}
