// Forms for collections, calendars and flow keys: a field for each member with the API's message, or all members as JSON.

import { html, useState } from "../vendor.js";
import { request } from "../api.js";
import { Action, Dialog, Field, ProblemNote, Said, at, go, ownZone, tell } from "../parts.js";

const zones = ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [ownZone])];
const DAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const EVENTS = [["", "by the default"], ["failures", "failures"], ["all", "all"], ["none", "none"]];
const YES_NO = [["", "by the default"], ["true", "yes"], ["false", "no"]];

/** The fields by kind: rows of [path, label, type, hint]. The fields of a row are on one line. */
const FIELDS = {
  collections: [
    [["quota.maxJobs", "Maximum jobs", "number"], ["quota.maxRunsPerJob", "Maximum runs of a schedule", "number", "In total, not counting manual runs."]],
    [["quota.minIntervalSeconds", "Shortest interval, in seconds", "number"], ["callbackTimeoutSeconds", "Seconds to wait for a result", "number", "For jobs that do not set it."]],
    [["retention.runDays", "Days to keep runs", "number"], ["retention.endedJobDays", "Days to keep ended jobs", "number", "0 keeps them."]],
    [["events", "Events to publish", EVENTS], ["flowKey", "Flow key", "text", "For calls of jobs that name none."]],
    [["defaults.timezone", "Time zone of new schedules", "zone"]],
  ],
  calendars: [
    [["description", "Description", "text"]],
    [["timezone", "Time zone", "zone", "Leave empty to use each schedule's own."]],
    [["dates", "Days, one per line", "lines", "2027-12-24, or 12-25 for every year."]],
    [["weekly", "Every week", "weekly"]],
    [["ranges", "Date ranges", "ranges", "From and to are days, or times such as 2027-12-24T18:00:00."]],
  ],
  "flow-keys": [
    [["description", "Description", "text"]],
    [["rate.limit", "Calls at most", "number"], ["rate.periodSeconds", "per this many seconds", "number"]],
    [["parallelism", "Calls at once", "number"]],
    [["circuit.enabled", "Stop calls after failures in a row", YES_NO], ["circuit.failures", "Failures in a row", "number"], ["circuit.probeSeconds", "Seconds between probes", "number"]],
  ],
};

const valueAt = (members, path) => path.split(".").reduce((found, name) => found?.[name], members);

/** Returns the members with a value at a path. An empty value is removed, and so is an object that becomes empty. */
export function withValue(members, path, value) {
  const [name, ...rest] = path.split(".");
  const inner = rest.length ? withValue(members[name] ?? {}, rest.join("."), value) : value;
  const { [name]: _, ...others } = members;
  const empty = inner === undefined || inner === "" || (typeof inner === "object" && !Object.keys(inner).length);
  return empty ? others : { ...members, [name]: inner };
}

/** Returns the JSON merge patch (RFC 7396) that turns one object into another. */
export function patchOf(before, after) {
  const plain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const gone = Object.keys(before).filter((name) => !(name in after)).map((name) => [name, null]);
  const kept = Object.entries(after).map(([name, value]) => [name, plain(value) && plain(before[name]) ? patchOf(before[name], value) : value]);
  return Object.fromEntries([...gone, ...kept]);
}

/** Shows the form of a resource in a dialog. kind: its entry in KINDS; resource: null for a new one. Members and etag are
 * those of the moment at which the form was opened: the page below goes on reading the resource. */
export function EditResource({ name, kind, resource, members: opened, etag, onClose, onDone }) {
  const [{ first, match }] = useState({ first: opened, match: etag });
  const [called, setCalled] = useState(resource?.name ?? "");
  const [members, setMembers] = useState(first);
  const [text, setText] = useState(null);
  const [problem, setProblem] = useState(null);
  const turn = () => {
    try {
      if (text !== null) setMembers(parsed(text));
      setText(text === null ? JSON.stringify(members, null, 2) : null);
      setProblem(null);
    } catch (problem_) {
      setProblem(problem_);
    }
  };
  const act = async () => {
    setProblem(null);
    try {
      const body = text === null ? withoutBlankLines(members) : parsed(text);
      if (!resource) await request("POST", `/v1/${name}`, { body: { name: called, ...body }, key: crypto.randomUUID() });
      else if (kind.change === "PUT") await request("PUT", `/v1/${name}/${encodeURIComponent(resource.name)}`, { body: { name: resource.name, ...body }, ifMatch: match });
      else await request("PATCH", `/v1/${name}/${encodeURIComponent(resource.name)}`, { body: patchOf(first, body), type: "application/merge-patch+json", ifMatch: match });
    } catch (thrown) {
      if (thrown.status === undefined) throw thrown;
      setProblem(thrown.status === 412 ? { ...thrown, detail: "Someone else changed it in the meantime. Your input stays here. Close this form, look at the new version, and edit again." } : thrown);
      return;
    }
    onClose();
    await onDone?.();
    if (!resource) go(at(`/${name}/${encodeURIComponent(called)}`));
    tell(resource ? `Changed the ${kind.one}.` : `Created the ${kind.one}.`);
  };
  return html`<${Dialog} title=${`${resource ? "Edit" : "Create"} ${kind.one}`} onClose=${onClose}>
    ${!resource && html`<${Field} label="Name" name="name" problem=${problem}><input value=${called} maxlength="128" onInput=${(event) => setCalled(event.target.value)} /><//>`}
    ${text === null && FIELDS[name].map((row) => html`<div class=${row.length > 1 ? "row" : ""}>${row.map(([path, label, type, hint]) => html`<${Input} key=${path} label=${label} type=${type} hint=${hint} path=${path} problem=${problem} value=${valueAt(members, path)} onChange=${(value) => setMembers((before) => withValue(before, path, value))} />`)}</div>`)}
    ${text !== null && html`<${Field} label="Members (JSON)" name="json" problem=${problem}><textarea class="code" rows="12" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}></textarea><//>`}
    <p><button type="button" class="quiet" onClick=${turn}>${text === null ? "Edit all members as JSON" : "Edit by fields"}</button></p>
    <${ProblemNote} problem=${problem} />
    <p class="actions"><${Action} kind="primary" act=${act}>${resource ? "Change" : "Create"} ${kind.one}<//><button type="button" onClick=${onClose}>Cancel</button></p><//>`;
}

/** Returns the value of a JSON string, or throws a Problem. */
function parsed(text) {
  try {
    const found = JSON.parse(text);
    if (typeof found === "object" && found !== null && !Array.isArray(found)) return found;
    throw new SyntaxError("an object is needed");
  } catch (error) {
    const reason = `This is not a JSON object: ${error.message}`;
    throw { status: 422, code: "INVALID_JSON", title: "Not JSON", detail: reason, errors: [{ field: "json", reason }], retryAfter: null };
  }
}

function withoutBlankLines(members) {
  return members.dates ? withValue(members, "dates", members.dates.filter(Boolean)) : members;
}

/** Returns the number in a string, or else the string itself, which the API then refuses. */
const numberOf = (text) => (text === "" ? "" : Number.isFinite(Number(text)) ? Number(text) : text);
const choiceOf = (text) => ({ true: true, false: false })[text] ?? text;

function Input({ label, type, hint, path, problem, value, onChange }) {
  if (type === "weekly") return html`<${Weekly} label=${label} path=${path} problem=${problem} rows=${value ?? []} onChange=${onChange} />`;
  if (type === "ranges") return html`<${Ranges} label=${label} path=${path} hint=${hint} problem=${problem} rows=${value ?? []} onChange=${onChange} />`;
  const typed = (read) => (event) => onChange(read(event.target.value));
  return html`<${Field} label=${label} hint=${hint} name=${path} problem=${problem}>
    ${Array.isArray(type) ? html`<select value=${String(value ?? "")} onChange=${typed(choiceOf)}>${type.map(([name, title]) => html`<option value=${name}>${title}</option>`)}</select>`
    : type === "lines" ? html`<textarea class="code" rows="4" spellcheck="false" value=${(value ?? []).join("\n")} onInput=${typed((text) => (text ? text.split("\n").map((line) => line.trim()) : []))}></textarea>`
    : type === "zone" ? html`<input list="zones-of-forms" spellcheck="false" value=${value ?? ""} onInput=${typed((text) => text.trim())} /><datalist id="zones-of-forms">${zones.map((name) => html`<option value=${name}></option>`)}</datalist>`
    : html`<input inputmode=${type === "number" ? "numeric" : null} value=${value ?? ""} onInput=${typed(type === "number" ? numberOf : (text) => text)} />`}<//>`;
}

const changed = (rows, index, members) => rows.map((row, place) => (place === index ? { ...row, ...members } : row));
const left = (rows, index) => rows.filter((_, place) => place !== index);

/** Shows the rows of a list with a button that adds one, and the API's messages below each row. */
function Rows({ label, hint, path, problem, rows, added, word, onChange, children }) {
  return html`<fieldset><legend>${label}</legend>${rows.map((row, index) => html`<div class="row" key=${index}>${children(row, index)}<button type="button" class="danger" aria-label=${`Remove ${word} ${index + 1}`} onClick=${() => onChange(left(rows, index))}>Remove</button></div>
      <${Said} name=${`${path}[${index}]`} problem=${problem} />`)}
    ${hint && rows.length > 0 && html`<p class="hint">${hint}</p>`}
    <p><button type="button" onClick=${() => onChange([...rows, added])}>Add ${word}</button></p></fieldset>`;
}

function Weekly({ label, path, problem, rows, onChange }) {
  return html`<${Rows} label=${label} path=${path} problem=${problem} rows=${rows} added=${{ days: ["SAT", "SUN"] }} word="days of the week" onChange=${onChange}>
    ${(row, index) => html`<span class="chips" role="group" aria-label=${`Days ${index + 1}`}>${DAYS.map((day) => html`<button type="button" aria-pressed=${row.days.includes(day)} onClick=${() => onChange(changed(rows, index, { days: DAYS.filter((each) => row.days.includes(each) !== (each === day)) }))}>${day.charAt(0) + day.slice(1).toLowerCase()}</button>`)}</span>
      <input aria-label=${`From, days ${index + 1}`} placeholder="00:00" value=${row.from ?? ""} onInput=${(event) => onChange(changed(rows, index, { from: event.target.value || undefined }))} />
      <input aria-label=${`To, days ${index + 1}`} placeholder="24:00" value=${row.to ?? ""} onInput=${(event) => onChange(changed(rows, index, { to: event.target.value || undefined }))} />`}<//>`;
}

function Ranges({ label, hint, path, problem, rows, onChange }) {
  return html`<${Rows} label=${label} hint=${hint} path=${path} problem=${problem} rows=${rows} added=${{ from: "", to: "" }} word="stretch" onChange=${onChange}>
    ${(row, index) => ["from", "to"].map((side) => html`<input aria-label=${`${side === "from" ? "From" : "To"}, stretch ${index + 1}`} placeholder="2027-12-24" value=${row[side]} onInput=${(event) => onChange(changed(rows, index, { [side]: event.target.value }))} />`)}<//>`;
}
