// Credentials of a tenant, and tenants for the provider.

import { html, useState } from "../vendor.js";
import { actsFor, isProvider, may, request, useAnswer, useList, useWatched } from "../api.js";
import { Action, Confirm, Dialog, Empty, Facts, Field, Head, Loaded, More, ProblemNote, State, Table, Text, When, at, backlogOf, count, go, length, tell } from "../parts.js";
import { Secret } from "./resources.js";

const EVERY_S = 30;
const TENANT_SCOPES = ["jobs:read", "jobs:write", "messages:write", "runs:write", "errors:edit", "tasks:write", "admin"];
const PROVIDER_SCOPES = ["provider:*", "provider:admin"];
const OVERLAPS = [["86400", "for a day"], ["3600", "for an hour"], ["604800", "for a week"], ["0", "not at all: it ends at once"]];

export function Access() {
  const list = useList("/v1/credentials?limit=100", EVERY_S);
  const [open, setOpen] = useState(/** @type {{what: string, each?: any}} */ ({ what: "" }));
  const [made, setMade] = useState(null);
  const close = () => setOpen({ what: "" });
  const shown = (issued) => {
    close();
    setMade(issued);
    list.reload();
  };
  return html`<${Head} title="Credentials" lead="Whoever has the id and the secret may do what its scopes say">${may("admin", "provider:admin") && html`<button type="button" class="primary" aria-haspopup="dialog" onClick=${() => setOpen({ what: "create" })}>Create credential</button>`}<//>
    <${Loaded} answer=${list} what="credentials">${list.items?.length ? html`<${Table} label="Credentials" keyOf=${(each) => each.clientId} rows=${list.items} columns=${[
        ["Name", (each) => html`<strong><${Text} cut=${60}>${each.name ?? "–"}<//></strong><br /><code>${each.clientId}</code>`, "main"],
        ["Scopes", (each) => each.scopes.map((scope) => html`<span class="tag">${scope}</span> `)],
        ["Secret's age", (each) => html`<${When} at=${each.rotatedAt ?? each.createdAt} />`],
        ["Former secret", (each) => each.formerSecretUntil ? html`made <${When} at=${each.createdAt} far=${false} /> or later, accepted until <${When} at=${each.formerSecretUntil} /><br /><button type="button" aria-haspopup="dialog" onClick=${() => setOpen({ what: "end", each })}>End former secret</button>` : html`<span class="faint">none</span>`],
        ["By", (each) => html`<${Text} cut=${40}>${each.rotatedBy ?? each.createdBy ?? ""}<//>`, "wide"],
        ["", (each) => html`<span class="actions"><button type="button" aria-haspopup="dialog" onClick=${() => setOpen({ what: "rotate", each })}>Rotate secret</button><button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen({ what: "delete", each })}>Delete credential</button></span>`],
      ]} /><${More} list=${list} />` : list.items && html`<${Empty} title="No credentials yet"><p>Programs sign in with them.</p><//>`}<//>
    ${open.what === "create" && html`<${CreateCredential} onClose=${close} onMade=${shown} />`}
    ${open.what === "rotate" && html`<${Rotate} credential=${open.each} onClose=${close} onMade=${shown} />`}
    ${open.what === "end" && html`<${Confirm} danger title="End former secret" consequence=${() => html`The secret that <code>${open.each.clientId}</code> had before its last rotation, and its tokens, end within a minute. The present secret stays.`} word=${() => "End former secret"} onClose=${close} act=${async () => { await request("DELETE", `/v1/credentials/${encodeURIComponent(open.each.clientId)}/former-secret`); await list.reload(); tell("Ended the former secret."); }} />`}
    ${open.what === "delete" && html`<${Confirm} danger title="Delete credential" consequence=${() => html`<code>${open.each.clientId}</code> and its tokens end at once.`} word=${() => "Delete credential"} onClose=${close} act=${async () => { await request("DELETE", `/v1/credentials/${encodeURIComponent(open.each.clientId)}`); await list.reload(); tell("Deleted the credential."); }} />`}
    ${made && html`<${Secret} title="The new secret" names=${[["Client id", made.clientId], ["Secret", made.secret]]} onClose=${() => setMade(null)} />`}`;
}

function CreateCredential({ onClose, onMade }) {
  const own = isProvider() && !useWatched(actsFor);
  const offered = own ? PROVIDER_SCOPES : TENANT_SCOPES;
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(own ? [] : ["jobs:read"]);
  const [problem, setProblem] = useState(null);
  const act = async () => {
    try {
      const { body } = await request("POST", "/v1/credentials", { body: { ...(name && { name }), scopes }, key: crypto.randomUUID() });
      onMade(body);
    } catch (thrown) {
      setProblem(thrown);
    }
  };
  return html`<${Dialog} title="Create credential" onClose=${onClose}>
    <${Field} label="Name" name="name" problem=${problem}><input value=${name} maxlength="128" onInput=${(event) => setName(event.target.value)} /><//>
    <fieldset><legend>Scopes</legend>${offered.map((scope) => html`<label class="check"><input type="checkbox" checked=${scopes.includes(scope)} onChange=${(event) => setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))} /> ${scope}</label>`)}</fieldset>
    <${ProblemNote} problem=${problem} />
    <p class="actions"><${Action} kind="primary" disabled=${!scopes.length} act=${act}>Create credential<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

function Rotate({ credential, onClose, onMade }) {
  const [overlap, setOverlap] = useState("86400");
  const act = async () => {
    const { body } = await request("POST", `/v1/credentials/${encodeURIComponent(credential.clientId)}/rotate`, { body: { overlapSeconds: Number(overlap) }, key: crypto.randomUUID() });
    onMade(body);
  };
  return html`<${Dialog} title="Rotate secret" onClose=${onClose}>
    <p><code>${credential.clientId}</code> gets a new secret.</p>
    <${Field} label="The present secret is accepted"><select value=${overlap} onChange=${(event) => setOverlap(event.target.value)}>${OVERLAPS.map(([value, title]) => html`<option value=${value}>${title}</option>`)}</select><//>
    <p class="actions"><${Action} kind="primary" act=${act}>Rotate secret<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

// ---- Tenants --------------------------------------------------------------------------------------------------------

const actingFor = (tenant) => `/console/overview?as=${encodeURIComponent(tenant)}`;

export function Tenants() {
  const list = useList("/v1/tenants?limit=100", EVERY_S);
  const [name, setName] = useState("");
  const create = async () => {
    await request("POST", "/v1/tenants", { body: { tenant: name } });
    setName("");
    await list.reload();
    tell("Created the tenant.");
  };
  const health = useAnswer(may("provider:admin") ? "/v1/health" : null, 60).data;
  return html`<${Head} title="Tenants" lead="Owners of jobs. Act for one to see its pages." />
    ${health?.backlog && html`<p>${health.behindSeconds ? html`The sweeper is ${length(health.behindSeconds * 1000)} behind.` : "No run is overdue."} <span class="faint">${backlogOf(health)} waiting in the queues, last audit <${When} at=${health.lastAudit?.at} /></span></p>`}
    ${may("provider:admin") && html`<div class="filters"><input aria-label="Name of a new tenant" placeholder="Name of a new tenant" value=${name} onInput=${(event) => setName(event.target.value.trim())} /><${Action} disabled=${!name} act=${create}>Create tenant<//></div>`}
    <${Loaded} answer=${list} what="tenants">${list.items && html`<${Table} label="Tenants" keyOf=${(each) => each.tenant} rows=${list.items} href columns=${[
      ["Tenant", (each) => html`<a href=${at(`/tenants/${encodeURIComponent(each.tenant)}`)}><${Text} cut=${60}>${each.tenant}<//></a>`, "main"],
      ["State", (each) => html`<${State} state=${each.state} />`],
      ["Jobs", (each) => each.usage?.jobs ?? "", "number"], ["Schedules", (each) => each.usage?.schedules ?? "", "number"],
      ["Description", (each) => html`<${Text} cut=${80}>${each.description ?? ""}<//>`, "wide"],
      ["", (each) => html`<a class="button" href=${actingFor(each.tenant)}>Act for it</a>`],
    ]} /><${More} list=${list} />`}<//>`;
}

export function Tenant({ id }) {
  const path = `/v1/tenants/${encodeURIComponent(id)}`;
  const answer = useAnswer(path, EVERY_S);
  const subscriptions = useList(`${path}/subscriptions`);
  const [open, setOpen] = useState("");
  const tenant = answer.data;
  const jobs = tenant?.usage?.jobs ?? 0;
  const post = (verb) => async () => {
    await request("POST", `${path}/${verb}`, { body: {} });
    await answer.reload();
  };
  return html`<${Loaded} page answer=${answer} what="the tenant">${tenant && html`
    <${Head} title=${html`<${Text} cut=${60}>${tenant.tenant}<//>`} plain=${tenant.tenant} back=${["Tenants", at("/tenants")]} lead=${html`<${State} state=${tenant.state} />`}>
      <a class="button primary" href=${actingFor(tenant.tenant)}>Act for it</a>
      ${tenant.state === "ACTIVE" && html`<button type="button" aria-haspopup="dialog" onClick=${() => setOpen("disable")}>Disable tenant</button>`}
      ${tenant.state === "DISABLED" && html`<${Action} act=${post("enable")}>Enable tenant<//>`}
      <button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen("delete")}>Delete tenant</button><//>
    <${Facts} items=${[["Jobs", jobs], ["Schedules", tenant.usage?.schedules], ...Object.entries(tenant.quota ?? {}).map(([name, value]) => [`Quota: ${name}`, value ?? "no limit"]), ["Withheld scopes", (tenant.withheldScopes ?? []).join(", ")], ["Created", html`<${When} at=${tenant.createdAt} />`]]} />
    <h2>Subscriptions</h2><${Loaded} answer=${subscriptions} what="subscriptions">${subscriptions.items?.length ? html`<ul>${subscriptions.items.map((each) => html`<li><${Text}>${each.application}<//> <span class="faint">since</span> <${When} at=${each.createdAt} /></li>`)}</ul>` : html`<p class="faint">None.</p>`}<//>
    ${open === "disable" && html`<${Confirm} title="Disable tenant" consequence=${() => `Its ${count(jobs, "job")} stop, and its callers are refused.`} word=${() => "Disable tenant"} onClose=${() => setOpen("")} act=${post("disable")} />`}
    ${open === "delete" && html`<${Confirm} danger title="Delete tenant" consequence=${() => `The tenant goes with its ${count(jobs, "job")}, runs, credentials and all that it has. This cannot be undone.`} word=${() => `Delete tenant with ${count(jobs, "job")}`} onClose=${() => setOpen("")} act=${async () => { await request("DELETE", path); go(at("/operations")); tell("Began to delete 1 tenant."); }} />`}`}<//>`;
}
