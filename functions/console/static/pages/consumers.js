// Consumers of events: the holder of each lease, its end, and how many events are held.

import { html, useState } from "../vendor.js";
import { may, request, useAnswer, useList, withQuery } from "../api.js";
import { Confirm, Empty, Facts, Head, Loaded, More, State, Table, Text, When, at, count, go, tell } from "../parts.js";

const EVERY_S = 15;
const MOST_COUNTED = 1000;

const heldOf = (each) => `${each.held.toLocaleString("en-GB")}${each.held >= MOST_COUNTED ? " or more" : ""}`;
const placeOf = (name) => `/v1/consumers/${encodeURIComponent(name)}`;

export function Consumers() {
  const list = useList("/v1/consumers?limit=100", EVERY_S);
  return html`<${Head} title="Consumers" lead="Applications that receive the events of jobs; events are held for those who are away" />
    <${Loaded} answer=${list} what="consumers">${list.items?.length ? html`<${Table} label="Consumers" keyOf=${(each) => each.name} rows=${list.items} href columns=${[
        ["Name", (each) => html`<a href=${at(`/consumers/${encodeURIComponent(each.name)}`)}><${Text} cut=${60}>${each.name}<//></a>`, "main"],
        ["State", (each) => html`<${State} state=${each.state} />`],
        ["Held", heldOf, "number"],
        ["Oldest held", (each) => html`<${When} at=${each.oldestHeldAt} />`],
        ["Lease until", (each) => html`<${When} at=${each.leaseUntil} />`, "wide"],
        ["Holder", (each) => html`<${Text} cut=${40}>${each.holder ?? ""}<//>`, "wide"],
      ]} /><${More} list=${list} />` : list.items && html`<${Empty} title="No consumers yet"><p>A consumer appears here when a program takes its lease.</p><//>`}<//>`;
}

export function Consumer({ id }) {
  const answer = useAnswer(placeOf(id), EVERY_S);
  const [open, setOpen] = useState("");
  const each = answer.data;
  const [force, setForce] = useState(false);
  const close = () => setOpen("");
  const release = async () => {
    await request("DELETE", withQuery(`${placeOf(id)}/lease`, { holder: each.holder }));
    await answer.reload();
    tell("Ended the lease.");
  };
  const remove = async () => {
    await request("DELETE", withQuery(placeOf(id), { force: force || null }));
    go(at("/consumers"));
    tell("Deleted the consumer.");
  };
  return html`<${Loaded} page answer=${answer} what="the consumer">${each && html`
    <${Head} title=${html`<${Text} cut=${80}>${each.name}<//>`} plain=${each.name} back=${["Consumers", at("/consumers")]} lead=${html`<${State} state=${each.state} />`}>
      ${may("runs:write") && each.holder && html`<button type="button" aria-haspopup="dialog" onClick=${() => setOpen("release")}>End lease</button>`}
      ${may("jobs:write") && html`<button type="button" class="danger" aria-haspopup="dialog" onClick=${() => setOpen("delete")}>Delete consumer</button>`}<//>
    <${Facts} items=${[["Held", `${heldOf(each)} ${each.held === 1 ? "event" : "events"}`], ["Oldest held", each.oldestHeldAt && html`<${When} at=${each.oldestHeldAt} />`], ["Holder", each.holder && html`<${Text} cut=${80}>${each.holder}<//>`], ["Lease until", each.leaseUntil && html`<${When} at=${each.leaseUntil} />`]]} />
    <p class="hint">${{ AWAY: each.holder ? "Its holder has not started to receive, so its events are held." : "Nobody holds its lease, so its events are held until somebody takes it and starts.", STARTING: "Somebody holds its lease and has not yet got all that was missed.", LIVE: "It gets its events as they fall due." }[each.state]}</p>
    ${open === "release" && html`<${Confirm} title="End lease" onClose=${close} word=${() => "End lease"} consequence=${() => html`<${Text} cut=${80}>${each.holder}<//> gets no more events; they are held until somebody takes the lease again. A holder that still runs takes it back by itself.`} act=${release} />`}
    ${open === "delete" && html`<${Confirm} danger title="Delete consumer" onClose=${close} word=${() => "Delete consumer"} consequence=${() => `${count(each.held, "held event")}${each.held >= MOST_COUNTED ? " or more" : ""} will not be delivered: their runs end as missed.`} act=${remove}>
      <label class="check"><input type="checkbox" checked=${force} onChange=${(event) => setForce(event.target.checked)} /> Even if somebody holds its lease or jobs name it</label><//>`}`}<//>`;
}
