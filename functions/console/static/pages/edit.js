// Create or edit a job: common members as fields, all others as JSON, and a preview of each schedule while typing.

import { html, useEffect, useMemo, useState } from "../vendor.js";
import { may, request, useAnswer } from "../api.js";
import { Dialog, Field, Head, Loaded, ProblemNote, Source, Text, When, at, clock, day, go, length, ownZone, tell, useBegun, useOnce, visible } from "../parts.js";
import { named } from "./job.js";

const PREVIEW_AFTER_MS = 250;
const NOTATIONS = {
  cron: ["Cron, five fields", "30 2 * * 1-5"], every: ["At an interval", "PT15M"], at: ["Once at", "2027-01-01T09:00:00"],
  rrule: ["Recurrence rule", "FREQ=MONTHLY;BYDAY=-1FR"], eventBridge: ["EventBridge Scheduler", "cron(30 2 ? * MON-FRI *)"],
  time: ["In words", "tomorrow at 4pm"], repeatAt: ["Each day at", "4:40pm"], sapCron: ["SAP, seven fields", "* * * * 2 30 0"], recurrence: ["Azure's recurrence (JSON)", '{"frequency": "day", "interval": 1}'],
};
const TIMING = ["align", "timezone", "dstGap", "dstOverlap", "monthOverflow", "startTime", "endTime", "count", "jitterSeconds", "calendars"];
/** Members that only some notations have, and that another notation leaves out. */
const OF_NOTATION = new Set(["align", "monthOverflow"]);
const CHOICES = {
  dstGap: [["", "by the default"], ["skip", "leave out"], ["next_valid", "at the first instant after"], ["shift", "shift by the change"]],
  dstOverlap: [["", "by the default"], ["first", "the first time"], ["second", "the second time"], ["both", "both times"]],
};
const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const zones = ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [ownZone])];

const TARGETS = {
  http: { type: "http", method: "POST", url: "", payload: "" },
  ecs: { type: "ecs", taskDefinition: "", container: "", payload: "" },
};

export function Create() {
  const type = new URL(location.href).searchParams.get("type");
  return html`<${Editor} draft=${{ name: "", description: "", collection: "default", tags: "", action: TARGETS[type] ?? TARGETS.http, more: "", schedules: [newSchedule()] }} />`;
}

export function Edit({ id }) {
  const job = useAnswer(`/v1/jobs/${encodeURIComponent(id)}?include=schedules`);
  return html`<${Loaded} page answer=${job} what="the job">${job.data && html`<${Editor} draft=${draftOf(job.data)} job=${job.data} etag=${job.etag} />`}<//>`;
}

let keys = 0;
const newSchedule = () => ({ key: (keys += 1), name: "", notation: "cron", text: "30 2 * * 1-5", timezone: ownZone, dstGap: "", dstOverlap: "", kept: {} });

/** Returns the content of the fields for a job. */
function draftOf(job) {
  const { payload, body, ...action } = job.action;
  return {
    name: job.name, description: job.description ?? "", collection: job.collection, tags: job.tags.join(", "),
    action: { ...action, payload: payload === undefined || payload === null ? "" : JSON.stringify(payload, null, 2), ...(body && { body }) }, more: "",
    schedules: job.schedules.map((each) => {
      const notation = Object.keys(NOTATIONS).find((name) => each[name] !== undefined && each[name] !== null) ?? "cron";
      const value = each[notation];
      return {
        key: (keys += 1), id: each.id, name: named(each), notation, text: typeof value === "string" ? value : JSON.stringify(value), timezone: each.timezone ?? "UTC",
        dstGap: each.dstGap ?? "", dstOverlap: each.dstOverlap ?? "", kept: Object.fromEntries(TIMING.filter((name) => !["timezone", "dstGap", "dstOverlap"].includes(name) && each[name] !== undefined && each[name] !== null && !(Array.isArray(each[name]) && !each[name].length)).map((name) => [name, each[name]])),
      };
    }),
  };
}

function valueOf(text, json) {
  if (!json) return text.trim();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns a schedule in the form of the API. */
function timingOf(schedule) {
  return {
    [schedule.notation]: valueOf(schedule.text, schedule.notation === "recurrence" || (schedule.notation === "time" && schedule.text.trim().startsWith("{"))),
    ...(schedule.timezone && { timezone: schedule.timezone }), ...(schedule.dstGap && { dstGap: schedule.dstGap }), ...(schedule.dstOverlap && { dstOverlap: schedule.dstOverlap }), ...schedule.kept,
  };
}

/** Returns the body of a request. Throws a Problem for invalid JSON. */
function bodyOf(draft, job) {
  const wrong = (field, error) => ({ status: 422, code: "INVALID_JSON", detail: `${field} is not JSON: ${error.message}`, errors: [{ field, reason: `This is not JSON: ${error.message}` }], retryAfter: null });
  const read = (field, text) => {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw wrong(field, error);
    }
  };
  const { payload, ...action } = draft.action;
  const more = draft.more.trim() ? read("more", draft.more) : {};
  if (typeof more !== "object" || more === null || Array.isArray(more)) throw wrong("more", new Error("an object is needed"));
  return {
    ...job, name: draft.name, description: draft.description || null, tags: draft.tags.split(",").map((tag) => tag.trim()).filter(Boolean),
    collection: draft.collection,
    ...more,
    action: { ...action, ...(payload.trim() ? { payload: read("action.payload", payload) } : {}), ...(more.action ?? {}) },
    schedules: draft.schedules.map((each) => ({ ...withoutTiming(job?.schedules.find((one) => one.id === each.id) ?? {}), ...(each.name && { name: each.name }), ...timingOf(each) })),
  };
}

/** Returns a schedule without its timing, which the form has. */
function withoutTiming(schedule) {
  const timing = new Set([...Object.keys(NOTATIONS), ...TIMING]);
  return Object.fromEntries(Object.entries(schedule).filter(([name]) => !timing.has(name)));
}

function Editor({ draft: first, job, etag }) {
  const [{ draft, match }, again, change, forget] = useBegun({ draft: first, match: etag });
  const [theirs, setTheirs] = useState(null);
  const key = useMemo(() => crypto.randomUUID(), []);
  const changed = (members) => change((before) => ({ ...before, draft: { ...before.draft, ...members(before.draft) } }));
  const set = (members) => changed(() => members);
  const setAction = (members) => changed((before) => ({ action: { ...before.action, ...members } }));
  const setSchedule = (index, members) => changed((before) => ({ schedules: before.schedules.map((each, place) => (place === index ? { ...each, ...members } : each)) }));
  const { once: save, busy, problem } = useOnce(async (ifMatch) => {
    const body = bodyOf(draft, job);
    const path = job ? `/v1/jobs/${job.id}` : "/v1/jobs";
    try {
      const answer = await request(job ? "PUT" : "POST", path, job ? { body, ifMatch } : { body, key });
      forget();
      tell(job ? "Changed the job." : "Created the job.");
      go(at(`/jobs/${answer.body.id}`));
    } catch (thrown) {
      if (thrown.status !== 412) throw thrown;
      setTheirs(await request("GET", `/v1/jobs/${job.id}?include=schedules`));
    }
  });
  const discard = () => {
    forget();
    go(job ? at(`/jobs/${job.id}`) : at("/jobs"));
  };
  return html`<${Head} title=${job ? html`Edit <${Text} cut=${60}>${job.name}<//>` : "Create a job"} plain=${job ? `Edit ${job.name.slice(0, 40)}` : "Create a job"} back=${job ? ["The job", at(`/jobs/${job.id}`)] : ["Jobs", at("/jobs")]} />
    ${!may("jobs:write") && html`<p class="note">Your credential may not ${job ? "change" : "create"} jobs: that needs the scope jobs:write.</p>`}
    ${again && html`<p class="note">You began this form before and left it. <button type="button" class="quiet" onClick=${discard}>Discard what I wrote</button></p>`}
    <form class="editor" onSubmit=${(event) => { event.preventDefault(); save(match); }}>
      <section class="card"><h2>Job</h2>
        <${Field} label="Name" name="name" problem=${problem}><input value=${draft.name} maxlength="128" onInput=${(event) => set({ name: event.target.value })} /><//>
        <${Field} label="Description" name="description" problem=${problem}><input value=${draft.description} maxlength="1000" onInput=${(event) => set({ description: event.target.value })} /><//>
        <div class="two"><${Field} label="Collection" name="collection" problem=${problem}><input value=${draft.collection} disabled=${Boolean(job)} onInput=${(event) => set({ collection: event.target.value })} /><//>
        <${Field} label="Tags, separated by commas" name="tags" problem=${problem}><input value=${draft.tags} onInput=${(event) => set({ tags: event.target.value })} /><//></div></section>
      <section class="card"><h2>Target</h2>
        ${draft.action.type === "http" ? html`<div class="two method"><${Field} label="Method" name="action.method" problem=${problem}><select value=${draft.action.method} onChange=${(event) => setAction({ method: event.target.value })}>${METHODS.map((name) => html`<option value=${name}>${name}</option>`)}</select><//>
          <${Field} label="Address" name="action.url" problem=${problem}><input type="text" inputmode="url" placeholder="https://example.org/run" value=${draft.action.url} onInput=${(event) => setAction({ url: event.target.value })} /><//></div>`
        : draft.action.type === "ecs" ? html`<div class="two"><${Field} label="Task definition" hint="One that the stack's parameter TaskDefinitionArns allows: family, or family:7" name="action.taskDefinition" problem=${problem}><input value=${draft.action.taskDefinition} spellcheck="false" onInput=${(event) => setAction({ taskDefinition: event.target.value })} /><//>
          <${Field} label="Container" hint="Its exit code decides." name="action.container" problem=${problem}><input value=${draft.action.container} spellcheck="false" onInput=${(event) => setAction({ container: event.target.value })} /><//></div>`
        : html`<p>This job's target is of the type <strong>${draft.action.type}</strong>; change it as JSON below.</p>`}
        <${Field} label="Payload (JSON)" name="action.payload" problem=${problem}><textarea class="code" rows="4" value=${draft.action.payload} onInput=${(event) => setAction({ payload: event.target.value })}></textarea><//>
        <details><summary>Other members as JSON</summary><${Field} label="Members of the job, such as action, policies or hooks" hint="They are merged into what the fields above say." name="more" problem=${problem}><textarea class="code" rows="6" placeholder=${'{"action": {"retry": {"type": "fixed", "maxRetries": 3, "delaySeconds": 10}}}'} value=${draft.more} onInput=${(event) => set({ more: event.target.value })}></textarea><//></details></section>
      ${draft.schedules.map((each, index) => html`<${ScheduleFields} key=${each.key} schedule=${each} index=${index} problem=${problem} collection=${draft.collection} set=${(members) => setSchedule(index, members)} remove=${() => set({ schedules: draft.schedules.filter((_, place) => place !== index) })} />`)}
      <p><button type="button" onClick=${() => set({ schedules: [...draft.schedules, newSchedule()] })}>Add schedule</button></p>
      <${ProblemNote} problem=${problem} />
      <p class="actions"><button class="primary" aria-busy=${busy} disabled=${!may("jobs:write")}>${job ? "Change job" : "Create job"}</button><button type="button" onClick=${discard}>Cancel</button></p></form>
    ${theirs && html`<${SideBySide} mine=${draft} theirs=${theirs.body} onClose=${() => setTheirs(null)} onMine=${() => { change((before) => ({ ...before, match: theirs.etag })); setTheirs(null); save(theirs.etag); }} onTheirs=${() => { change(() => ({ draft: draftOf(theirs.body), match: theirs.etag })); setTheirs(null); }} />`}`;
}

function SideBySide({ mine, theirs, onClose, onMine, onTheirs }) {
  const other = draftOf(theirs);
  const show = (draft) => ({ name: draft.name, description: draft.description, tags: draft.tags, action: draft.action, schedules: draft.schedules.map((each) => ({ name: each.name, ...timingOf(each) })) });
  return html`<${Dialog} title="Someone else changed this job" onClose=${onClose}>
    <p>Your changes are not saved yet. Save your version over theirs, or use their version instead (revision ${theirs.revision}, <${When} at=${theirs.modifiedAt} />).</p>
    <div class="side"><div><h3>Yours</h3><${Source} value=${show(mine)} /></div><div><h3>Theirs</h3><${Source} value=${show(other)} /></div></div>
    <p class="actions"><button type="button" class="primary" onClick=${onMine}>Save my version</button><button type="button" onClick=${onTheirs}>Use their version</button><button type="button" onClick=${onClose}>Back to the form</button></p><//>`;
}

// ---- A schedule and its preview -------------------------------------------------------------------------------------

function ScheduleFields({ schedule, index, problem, collection, set, remove }) {
  const preview = usePreview(schedule, collection);
  const at_ = `schedules[${index}]`;
  const own = preview.problem?.status === 422 ? { ...preview.problem, errors: preview.problem.errors.map((each) => ({ ...each, field: `${at_}.${each.field}` })) } : problem;
  const kept = Object.entries(schedule.kept);
  return html`<section class="card schedule"><h2>Schedule ${index + 1}</h2><div class="side"><div>
      <div class="two"><${Field} label="Notation"><select value=${schedule.notation} onChange=${(event) => set({ notation: event.target.value, text: NOTATIONS[event.target.value][1], kept: Object.fromEntries(Object.entries(schedule.kept).filter(([name]) => !OF_NOTATION.has(name))) })}>${Object.entries(NOTATIONS).map(([name, [title]]) => html`<option value=${name}>${title}</option>`)}</select><//>
      <${Field} label="Name" name=${`${at_}.name`} problem=${own}><input value=${schedule.name} maxlength="128" onInput=${(event) => set({ name: event.target.value })} /><//></div>
      <${Field} label="Rule" name=${`${at_}.${schedule.notation}`} problem=${own}><input class="code" value=${schedule.text} spellcheck="false" autocomplete="off" onInput=${(event) => set({ text: event.target.value })} /><//>
      <${Position} problem=${preview.problem} notation=${schedule.notation} text=${schedule.text} />
      <${Field} label="Time zone" name=${`${at_}.timezone`} problem=${own}><input list="zones" value=${schedule.timezone} spellcheck="false" onInput=${(event) => set({ timezone: event.target.value.trim() })} /><//><datalist id="zones">${zones.map((name) => html`<option value=${name}></option>`)}</datalist>
      <div class="two"><${Field} label="When a clock change skips the time" name=${`${at_}.dstGap`} problem=${own}><select value=${schedule.dstGap} onChange=${(event) => set({ dstGap: event.target.value })}>${CHOICES.dstGap.map(([name, title]) => html`<option value=${name}>${title}</option>`)}</select><//>
      <${Field} label="When a clock change repeats the time" name=${`${at_}.dstOverlap`} problem=${own}><select value=${schedule.dstOverlap} onChange=${(event) => set({ dstOverlap: event.target.value })}>${CHOICES.dstOverlap.map(([name, title]) => html`<option value=${name}>${title}</option>`)}</select><//></div>
      ${kept.length > 0 && html`<p class="hint">Kept as they are: ${kept.map(([name, value]) => html`<code>${name} ${visible(JSON.stringify(value))}</code> `)}</p>`}
      <p><button type="button" class="danger" onClick=${remove}>Remove schedule</button></p></div>
    <${Preview} preview=${preview} timezone=${schedule.timezone} /></div></section>`;
}

/** Marks the character of a rule to which the API's message refers. */
function Position({ problem, notation, text }) {
  const said = problem?.errors?.find((each) => each.field === notation && Number.isInteger(each.position));
  if (!said) return null;
  return html`<p class="position" aria-hidden="true"><code>${visible(text.slice(0, said.position))}<mark>${visible(text.slice(said.position, said.position + 1)) || "␣"}</mark>${visible(text.slice(said.position + 1))}</code></p>`;
}

/** Requests a preview a moment after the last key, and cancels older requests. */
function usePreview(schedule, collection) {
  const [preview, setPreview] = useState({ data: null, problem: null });
  const asked = JSON.stringify({ ...timingOf(schedule), collection: collection || undefined, limit: 8 });
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { body } = await request("POST", "/v1/schedules:preview", { body: JSON.parse(asked), signal: stop.signal });
        setPreview({ data: body, problem: null });
      } catch (problem) {
        if (!stop.signal.aborted && problem.status !== undefined) setPreview((before) => ({ data: before.data, problem }));
      }
    }, PREVIEW_AFTER_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [asked]);
  return preview;
}

const EFFECTS = { moved: "moved from", skipped: "left out:", doubled: "comes twice:", once: "once of two:" };

function Preview({ preview, timezone }) {
  const { data, problem } = preview;
  if (!data) return html`<aside class="preview" aria-live="polite">${problem ? html`<${ProblemNote} problem=${problem} />` : html`<p class="waiting">Reading the preview …</p>`}</aside>`;
  return html`<aside class=${`preview ${problem ? "aged" : ""}`} aria-label="Preview" aria-live="polite">
    <p class="summary"><${Text} cut=${400}>${data.description}<//></p>
    <table class="next-runs"><thead><tr><th scope="col">On the clock of ${timezone || "UTC"}</th><th scope="col">UTC</th><th scope="col"><span class="unseen">Clock change</span></th></tr></thead><tbody>${data.items.map((item) => html`<tr><td>${wall(item.localTime)}</td><td class="faint">${clock(Date.parse(item.plannedAt), true, "UTC")}</td><td>${item.movedBy && html`<span class="tag warn" title=${item.movedBy.rule}>↷ ${EFFECTS[item.movedBy.effect] ?? item.movedBy.effect} ${item.movedBy.localTime.slice(11, 16)}</span>`}</td></tr>`)}</tbody></table>
    ${!data.items.length && html`<p>No occurrence is left.</p>`}
    ${data.gaps && html`<p class="faint">Between two: ${length(data.gaps.smallestSeconds * 1000)}${data.gaps.largestSeconds !== data.gaps.smallestSeconds ? ` to ${length(data.gaps.largestSeconds * 1000)}` : ""}</p>`}
    ${data.warnings.length > 0 && html`<ul class="warnings">${data.warnings.map((each) => html`<li><${Text} cut=${300}>${each.message}<//></li>`)}</ul>`}</aside>`;
}

function wall(localTime) {
  const ms = Date.parse(`${localTime.slice(0, 19)}Z`);
  return `${day(ms, "UTC")} ${localTime.slice(11, 19)}`;
}
