// The overview: what needs attention, the last and next 24 hours of every job, and the load forecast.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor.js";
import { actsFor, freshness, isProvider, now, request, useAnswer, useWatched, withQuery } from "../api.js";
import { Empty, Facts, Head, Loaded, ProblemNote, Shape, Text, When, at, backlogOf, clock, count, day, distance, length, stateGroup, stateWord, useQuery, useSearch, zone, zoneName } from "../parts.js";

export function Overview() {
  const [query, change] = useQuery();
  const filters = Object.fromEntries(["search", "collection", "tag", "state"].map((name) => [name, query[name]]));
  const [drawn, setDrawn] = useState(false);
  return html`<${Head} title="Overview" />
    <${Attention} />
    <${Timeline} filters=${filters} query=${query} change=${change} onDrawn=${() => setDrawn(true)} />
    <${Load} begin=${drawn} />`;
}

// ---- What needs somebody --------------------------------------------------------------------------------------------

const ATTENTION_EVERY_S = 300;
const MOST_ITEMS = 6;

function Attention() {
  const answer = useAnswer("/v1/attention", ATTENTION_EVERY_S);
  const health = useAnswer(isProvider() ? "/v1/health" : null, 60).data;
  const [all, setAll] = useState(false);
  const found = answer.data;
  return html`<section class="attention" aria-label="Needs attention"><${Loaded} answer=${answer} what="what needs attention">${found && html`
      <h2>${found.items.length ? `${found.items.length + found.itemsLeftOut} ${found.items.length + found.itemsLeftOut === 1 ? "thing needs" : "things need"} attention` : "Nothing needs attention"}
        <span class="faint">${found.oldestDueAt ? html`oldest due <${When} at=${found.oldestDueAt} />` : "no run is overdue"}${health?.backlog && html`, ${backlogOf(health)} waiting in the queues, last audit <${When} at=${health.lastAudit?.at} />`}</span></h2>
      <ul>${found.items.slice(0, all ? undefined : MOST_ITEMS).map((item) => html`<li key=${`${item.kind} ${item.id}`}><${Shape} group=${GROUP_OF[item.kind] ?? "paused"} /><span><${Text} cut=${200}>${item.sentence}<//> <span class="faint">${item.lastAt ? html`last at <${When} at=${item.lastAt} />` : ""}</span></span>
        ${placeOf(item) && html`<a class="button" href=${placeOf(item)}>${WORD_OF[item.kind] ?? "Look"}</a>`}</li>`)}</ul>
      ${!all && found.items.length > MOST_ITEMS && html`<p><button type="button" class="quiet" onClick=${() => setAll(true)}>Show all ${found.items.length}</button></p>`}`}<//></section>`;
}

const GROUP_OF = { application: "failed", target: "failed", errors: "failed", operation: "failed", schedule: "failed", consumer: "failed", flowKey: "paused", collection: "off", tenant: "off" };
const WORD_OF = { errors: "Why", operation: "Look", schedule: "Look" };

function placeOf(item) {
  const places = { errors: `/errors/${item.id}`, operation: `/operations/${item.id}`, jobs: `/jobs?state=${item.id}`, schedule: `/jobs/${item.jobId}`, flowKey: `/flow-keys/${encodeURIComponent(item.id)}`, collection: `/collections/${encodeURIComponent(item.id)}`, consumer: `/consumers/${encodeURIComponent(item.id)}` };
  const [path, asked] = (places[item.kind] ?? "").split("?");
  return path && at(path, Object.fromEntries(new URLSearchParams(asked)));
}

// ---- The time line --------------------------------------------------------------------------------------------------

const DAY_MS = 86400e3;
const FIRST_LANES = 100;
const LANES_A_PAGE = 500;
const MOST_LANES = 5000;
const LANES_BY_ID = 50;
const AGAIN_AFTER_S = 10;
const ANEW_AFTER_MS = 6 * 3600e3;

/** Keeps lanes fresh: they are loaded once, and then only new marks and lanes of changed jobs are.
 * @returns {{view: any, problem: any, load: () => void}} */
function useTimeline(filters) {
  const [view, setView] = useState(null);
  const [problem, setProblem] = useState(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    let pauseS = 30;
    let kept = null;
    /** What has been read of the lanes so far; if a page of them fails, the rest is read later. */
    let begun = null;
    let failed = false;
    let asking = false;
    const ask = (path) => request("GET", path, { signal: stop.signal }).then(({ body }) => body);
    const first = async () => {
      do {
        const page = await ask(withQuery("/v1/timeline", { ...filters, limit: begun ? LANES_A_PAGE : FIRST_LANES, cursor: begun?.cursor }));
        begun = { lanes: [...(begun?.lanes ?? []), ...page.items], cursor: page.nextCursor, from: Date.parse(page.from), until: Date.parse(page.until), marksFrom: Math.max(begun?.marksFrom ?? 0, Date.parse(page.marksFrom)), since: begun?.since ?? page.since, units: (begun?.units ?? 0) + page.readUnits, more: page.nextCursor !== null, at: now(), everyS: page.askAgainAfterSeconds };
        if (begun.cursor) setView({ ...begun, reading: true });
      } while (begun.cursor && begun.lanes.length < MOST_LANES);
      kept = begun;
      pauseS = kept.everyS;
    };
    const next = async () => {
      const told = await ask(withQuery("/v1/timeline:changes", { since: kept.since }));
      pauseS = told.askAgainAfterSeconds;
      let lanes = withMarks(kept.lanes, told);
      if (told.jobs) lanes = await followed(lanes, told.jobs, ask, Object.values(filters).some(Boolean));
      const gap = Date.parse(told.marksFrom) > kept.at ? Date.parse(told.marksFrom) : kept.gap;
      kept = { ...kept, lanes, since: told.since, at: now(), gap };
    };
    const step = async () => {
      clearTimeout(timer);
      if (asking) return;
      asking = true;
      try {
        await (kept ? next() : first());
        setView(kept);
        setProblem(null);
        failed = false;
        freshness.set({ at: now(), failures: 0 });
      } catch (thrown) {
        if (stop.signal.aborted) return;
        if (thrown?.status === undefined) throw thrown;
        pauseS = failed ? Math.min(300, pauseS * 2) : AGAIN_AFTER_S;
        failed = true;
        setProblem(thrown);
      } finally {
        asking = false;
      }
      plan();
    };
    const plan = () => {
      clearTimeout(timer);
      if (!document.hidden && !stop.signal.aborted) timer = setTimeout(step, pauseS * 1000);
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : now() - (kept?.at ?? 0) > pauseS * 1000 ? step() : plan());
    document.addEventListener("visibilitychange", seen);
    step();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [round]);
  return { view, problem, load: () => setRound(round + 1) };
}

/** Returns the lanes, with their marks from `marksFrom` on replaced by those of an answer. */
export function withMarks(lanes, told) {
  const from = Date.parse(told.marksFrom);
  const fresh = Map.groupBy ? Map.groupBy(told.marks, (mark) => mark.jobId) : grouped(told.marks);
  return lanes.map((lane) => {
    const marks = fresh.get(lane.jobId);
    if (!marks && !lane.marks.some((mark) => Date.parse(mark.plannedAt) >= from)) return lane;
    return { ...lane, marks: [...(marks ?? []), ...lane.marks.filter((mark) => Date.parse(mark.plannedAt) < from)] };
  });
}

function grouped(marks) {
  const found = new Map();
  for (const mark of marks) found.set(mark.jobId, [...(found.get(mark.jobId) ?? []), mark]);
  return found;
}

/** Returns the lanes of the current jobs: without deleted jobs, with changed and new ones. */
async function followed(lanes, jobs, ask, filtered) {
  const revisions = new Map(jobs.map((job) => [job.jobId, job.revision]));
  const here = lanes.filter((lane) => revisions.has(lane.jobId));
  const known = new Map(here.map((lane) => [lane.jobId, lane.revision]));
  const stale = jobs.filter((job) => (known.has(job.jobId) ? known.get(job.jobId) !== job.revision : !filtered)).map((job) => job.jobId);
  const fresh = new Map();
  for (let start = 0; start < Math.min(stale.length, 4 * LANES_BY_ID); start += LANES_BY_ID) {
    const page = await ask(withQuery("/v1/timeline", { jobIds: stale.slice(start, start + LANES_BY_ID).join(",") }));
    for (const lane of page.items) fresh.set(lane.jobId, lane);
  }
  const kept = here.map((lane) => fresh.get(lane.jobId) ?? lane);
  const added = [...fresh.values()].filter((lane) => !known.has(lane.jobId));
  return [...kept, ...added];
}

const ROW_PX = 30;
const MOST_ROWS = 16;
const SPARE_ROWS = 6;
const MERGE_PX = 11;
/** A failure has its number next to it. */
const MERGE_LOUD_PX = 22;
/** Half the width of a time on the axis. */
const HALF_HOUR_PX = 20;
const NAME_PX = 220;
const NARROW_NAME_PX = 110;

function Timeline({ filters, query, change, onDrawn }) {
  const [search, setSearch] = useSearch(query, change);
  return html`<h2>Last and next 24 hours <span class="faint">times in ${zoneName()}</span></h2>
    <div class="filters"><input type="search" aria-label="Search lanes by name" placeholder="Search by name" value=${search} onInput=${(event) => setSearch(event.target.value)} /><${Legend} /></div>
    <${Found} key=${JSON.stringify([filters, useWatched(actsFor)])} filters=${filters} change=${change} onDrawn=${onDrawn} />`;
}

/** Shows the lanes of the jobs that match. */
function Found({ filters, change, onDrawn }) {
  const { view, problem, load } = useTimeline(filters);
  const drawn = Boolean(view ?? problem);
  useEffect(() => {
    if (drawn) onDrawn();
  }, [drawn]);
  return html`${!view && !problem && html`<p class="waiting" role="status">Reading the timeline …</p>`}
    ${problem && (view ? html`<p class="old" role="status">As of ${clock(view.at)}: ${problem.detail}</p>` : html`<${ProblemNote} problem=${problem} again=${load} />`)}
    ${view?.gap && html`<p class="note">So much failed at once that failures before ${clock(view.gap)} may be missing here. <button type="button" class="quiet" onClick=${load}>Reload</button></p>`}
    ${view && now() - view.from - DAY_MS > ANEW_AFTER_MS && html`<p class="note">This timeline was drawn for ${clock(view.from + DAY_MS, false)}. <button type="button" class="quiet" onClick=${load}>Reload</button></p>`}
    ${view && (view.lanes.length ? html`<${Lanes} view=${view} /><p class="hint">${view.reading ? `${view.lanes.length} jobs so far; reading more …` : html`${count(view.lanes.length, "job")}${view.more ? ", the first of more: narrow them by the search" : ""}. Reading it cost ${Math.round(view.units).toLocaleString("en-GB")} read units; keeping it fresh costs at most 45 a minute.${view.marksFrom > view.from + 1000 ? html` Failures are shown from <${When} at=${new Date(view.marksFrom).toISOString()} /> on; there are too many to show all.` : ""}`}</p>`
      : html`<${Empty} title=${filters.search ? "No job matches" : "No jobs yet"}><p>${filters.search ? html`<button type="button" onClick=${() => change({ search: "" })}>Clear the search</button>` : html`<a href=${at("/jobs")}>Go to the jobs</a>`}</p><//>`)}`;
}

function Legend() {
  const marks = [["ok", "no failure recorded"], ["failed", "failed"], ["skipped", "skipped"], ["missed", "left out"], ["running", "running"], ["due", "due, nothing recorded yet"], ["planned", "planned"]];
  return html`<ul class="legend" aria-label="Marks">${marks.map(([group, word]) => html`<li><${Shape} group=${group} />${word}</li>`)}</ul>`;
}

function Lanes({ view }) {
  const box = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 480, top: 0 });
  const shown = useWatched(zone);
  useLayoutEffect(() => {
    const measure = () => box.current && setSize((before) => ({ ...before, width: box.current.clientWidth, height: box.current.clientHeight }));
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    measure();
    return () => observer.disconnect();
  }, []);
  const onScroll = (event) => {
    const top = Math.floor(event.target.scrollTop / ROW_PX);
    if (top !== size.top) setSize({ ...size, top });
  };
  const nameWidth = size.width < 640 ? NARROW_NAME_PX : NAME_PX;
  const width = Math.max(120, size.width - nameWidth);
  const scale = useMemo(() => ({ from: view.from, span: view.until - view.from, width }), [view.from, view.until, width]);
  const first = Math.max(0, size.top - SPARE_ROWS);
  const last = Math.min(view.lanes.length, size.top + Math.ceil(size.height / ROW_PX) + SPARE_ROWS);
  const rows = view.lanes.slice(first, last);
  const pool = Math.ceil(size.height / ROW_PX) + 2 * SPARE_ROWS + 1;
  const focusRow = (index) => {
    const row = box.current.querySelector(`[aria-rowindex="${index + 1}"] a`);
    if (row) row.focus();
    else {
      box.current.scrollTop = Math.max(0, index * ROW_PX - size.height / 2);
      requestAnimationFrame(() => requestAnimationFrame(() => box.current.querySelector(`[aria-rowindex="${index + 1}"] a`)?.focus()));
    }
  };
  const onKey = (event) => {
    const row = document.activeElement.closest?.("[aria-rowindex]");
    const index = row ? Number(row.getAttribute("aria-rowindex")) - 1 : -1;
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 15, PageUp: -15 };
    if (steps[event.key]) focusRow(Math.max(0, Math.min(view.lanes.length - 1, index + steps[event.key])));
    else if (event.key === "Home") focusRow(0);
    else if (event.key === "End") focusRow(view.lanes.length - 1);
    else if (row && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      /** @type {HTMLElement[]} */
      const links = [...row.querySelectorAll("a")];
      links[links.findIndex((each) => each === document.activeElement) + (event.key === "ArrowRight" ? 1 : -1)]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const x = (ms) => ((ms - scale.from) / scale.span) * width;
  const hours = [];
  const stepHours = width < 500 ? 12 : 6;
  for (let ms = Math.ceil(view.from / 3600e3) * 3600e3; ms < view.until; ms += 3600e3) if (Number(clock(ms, false, shown).slice(0, 2)) % stepHours === 0 && clock(ms, false, shown).endsWith(":00")) hours.push(ms);
  return html`<div class="timeline">
    <div class="axis" aria-hidden="true" style=${{ marginLeft: `${nameWidth}px` }}>${hours.filter((ms) => Math.abs(x(ms) - x(now())) > 34 && x(ms) > HALF_HOUR_PX && x(ms) < width - HALF_HOUR_PX).map((ms) => html`<span style=${{ left: `${x(ms)}px` }}>${clock(ms, false, shown)}</span>`)}<b style=${{ left: `${x(now())}px` }}>now</b></div>
    <div class="lanes" ref=${box} role="table" style=${{ height: `${Math.min(MOST_ROWS, view.lanes.length) * ROW_PX + 2}px` }} aria-label="Jobs over the last and next 24 hours" aria-rowcount=${view.lanes.length} tabindex="0" onScroll=${onScroll} onKeyDown=${onKey}>
      <div class="tall" role="rowgroup" style=${{ height: `${view.lanes.length * ROW_PX}px` }}>
        <i class="rule now" aria-hidden="true" style=${{ left: `${nameWidth + x(now())}px` }}></i>
        ${rows.map((lane, index) => html`<div key=${(first + index) % pool} class="lane" role="row" aria-rowindex=${first + index + 1} style=${{ transform: `translateY(${(first + index) * ROW_PX}px)` }}>
          <span class="lane-name" role="rowheader" style=${{ width: `${nameWidth}px` }}><a href=${at(`/jobs/${lane.jobId}`)} tabindex=${first + index === 0 ? 0 : -1} title=${lane.schedules.map((each) => each.summary).join("; ")}><${Name} text=${lane.name} /></a></span>
          <${Marks} lane=${lane} scale=${scale} /></div>`)}
      </div></div></div>`;
}

function Name({ text }) {
  return html`<${Text} cut=${60}>${text.length > 58 ? `${text.slice(0, 58)}…` : text}<//>`;
}

/** Draws the marks of a lane. Marks closer together than their width are merged, but never across now. */
function Marks({ lane, scale }) {
  const drawn = useMemo(() => merged(lane, scale, now()), [lane, scale, Math.floor(now() / 60e3)]);
  // The same node each time, so that scrolling renders only new rows.
  return useMemo(() => row(lane, scale, drawn), [drawn]);
}

function row(lane, scale, drawn) {
  const later = lane.planned?.leftOut && drawn.at(-1)?.side && drawn.at(-1).x + 90 < scale.width ? drawn.at(-1).x : null;
  const tell = (event) => {
    const dots = event.target.classList.contains("dot") && [...event.currentTarget.querySelectorAll(".dot")];
    if (dots) event.target.title = titleOf(drawn.filter((mark) => mark.to === undefined && !mark.loud)[dots.indexOf(event.target)]);
  };
  return html`<span class="lane-marks" role="cell" onPointerOver=${tell}>
    ${later !== null && html`<span class="said" style=${{ left: `${later + 10}px` }}>${lane.planned.leftOut > 998 ? "999+" : lane.planned.leftOut} more</span>`}
    <span class="unseen">${spoken(lane)}</span>
    ${drawn.map((mark) => mark.to !== undefined
      ? html`<a class=${`band ${mark.group}`} tabindex="-1" href=${mark.href} title=${mark.title} style=${{ left: `${mark.x}px`, width: `${Math.max(26, mark.to - mark.x)}px` }}>${mark.count}</a>`
      : mark.loud ? html`<a class="mark" tabindex="-1" href=${mark.href} title=${mark.title} style=${{ left: `${mark.x - 6}px` }}><${Shape} group=${mark.group} />${mark.count > 1 ? html`<small>${mark.count > 99 ? "99+" : mark.count}</small>` : ""}</a>`
      : html`<i class=${`dot ${mark.group}`} style=${{ left: `${mark.x - 4.5}px` }}></i>`)}
    ${lane.sentence && lane.state !== "ACTIVE" && html`<span class="said" style=${{ left: `${Math.min(scale.width - 90, ((now() - scale.from) / scale.span) * scale.width + 8)}px` }}>${lane.state === "PAUSED" ? "paused" : lane.state === "INACTIVE" ? "switched off" : lane.state.toLowerCase()}</span>`}</span>`;
}

function spoken(lane) {
  const failed = lane.marks.filter((mark) => stateGroup(mark.state) === "failed").length;
  const others = lane.marks.length - failed;
  const past = lane.noFailure?.seconds.length ?? 0;
  const due = (lane.noRow?.seconds.length ?? 0) + (lane.noRow?.leftOut ?? 0);
  const ahead = (lane.planned?.seconds.length ?? 0) + (lane.planned?.leftOut ?? 0);
  return `${failed} failed, ${others} skipped, left out or running, ${past} without a recorded failure, ${due} due with nothing recorded, ${ahead} planned. ${lane.sentence ?? ""}`;
}

/** Returns the marks to draw: {x, to?, group, count, title, href, loud}. */
export function merged(lane, scale, at_) {
  const x = (ms) => ((ms - scale.from) / scale.span) * scale.width;
  const found = [];
  const taken = new Set();
  for (const mark of lane.marks) {
    const ms = Date.parse(mark.plannedAt);
    taken.add(Math.floor(ms / 1000));
    found.push({ ms, group: stateGroup(mark.state), until: mark.until ? Date.parse(mark.until) : null, count: mark.count ?? 1, loud: true, word: mark.sentence ?? stateWord(mark.state), href: at(`/runs/${mark.runId}`) });
  }
  const job = at(`/jobs/${lane.jobId}`);
  const plain = (second, group, word) => {
    const ms = scale.from + second * 1000;
    if (!taken.has(Math.floor(ms / 1000))) found.push({ ms, group, until: null, count: 1, loud: false, word, href: "" });
  };
  for (const second of lane.noFailure?.seconds ?? []) plain(second, "ok", "No failure recorded");
  for (const second of lane.noRow?.seconds ?? []) plain(second, "due", "Due, and nothing recorded yet");
  const now_s = (at_ - scale.from) / 1000;
  for (const second of lane.planned?.seconds ?? []) {
    if (second <= now_s) plain(second, "unread", "Due since this page was loaded; no failure recorded");
    else plain(second, "planned", "Planned");
  }
  const drawn = [];
  for (const one of found.filter((each) => each.ms >= scale.from && each.ms <= scale.from + scale.span).sort((a, b) => a.ms - b.ms)) {
    const place = x(one.ms);
    const before = drawn.at(-1);
    const side = one.ms > at_;
    if (one.until && one.count > 1) {
      drawn.push({ x: place, to: Math.min(scale.width, x(one.until)), group: one.group, count: one.count, side, ms: one.ms, title: `${one.count} from ${clock(one.ms)} to ${clock(one.until)}: ${one.word}`, href: one.href });
    } else if (before && before.to === undefined && before.side === side && before.group === one.group && before.loud === one.loud && place - before.x < (one.loud ? MERGE_LOUD_PX : MERGE_PX)) {
      before.count += 1;
      before.lastMs = one.ms;
      before.href = `${job}#runs`;
    } else {
      drawn.push({ x: place, group: one.group, count: 1, side, loud: one.loud, ms: one.ms, lastMs: one.ms, word: one.word, href: one.href });
    }
  }
  for (const mark of drawn) if (mark.loud) mark.title = titleOf(mark);
  return drawn;
}

/** Returns a mark in words. Texts of dots are made only when somebody points at one. */
function titleOf(mark) {
  return mark.count > 1 ? `${mark.count} from ${clock(mark.ms)} to ${clock(mark.lastMs)}: ${mark.word}` : `${day(mark.ms)} ${clock(mark.ms)}: ${mark.word}`;
}

// ---- The load ahead -------------------------------------------------------------------------------------------------

const LOAD_EVERY_S = 900;

/** Shows the next 24 hours as a table of quarter hours: a column for each hour, a number and a shade in each cell. It is
 * loaded after the timeline, which people see first. */
function Load({ begin }) {
  const shown = useWatched(zone);
  const answer = useAnswer(begin ? "/v1/load" : null, LOAD_EVERY_S);
  const load = answer.data;
  const slots = load?.slots ?? [];
  const from = load ? Date.parse(load.from) : 0;
  const most = Math.max(1, ...slots);
  const columns = Array.from({ length: 24 }, (_, hour) => from + hour * 3600e3);
  return html`<h2>Load ahead <span class="faint">runs of all jobs that will begin in each quarter of an hour${load ? html`, ${count(slots.reduce((sum, each) => sum + each, 0), "run")} in all; computed <${When} at=${load.computedAt} />` : ""}</span></h2>
    <${Loaded} answer=${answer} what="the load ahead">${load && html`<div class="scroll" role="region" aria-label="Load ahead" tabindex="0"><table class="heat" role="table">
      <thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader"><span class="unseen">Minute</span></th>${columns.map((ms) => html`<th scope="col" role="columnheader">${clock(ms, false, shown)}</th>`)}</tr></thead>
      <tbody role="rowgroup">${[0, 1, 2, 3].map((quarter) => html`<tr role="row"><th scope="row" role="rowheader">+${quarter * 15}</th>${columns.map((_, hour) => html`<${Cell} number=${slots[hour * 4 + quarter] ?? 0} most=${most} />`)}</tr>`)}</tbody></table></div>
      ${load.jobsLeftOut > 0 && html`<p class="hint">${count(load.jobsLeftOut, "job")} more are not counted.</p>`}`}<//>`;
}

function Cell({ number, most }) {
  const level = number === 0 ? 0 : 1 + Math.min(4, Math.floor((Math.log(number + 1) / Math.log(most + 1)) * 5));
  return html`<td role="cell" class=${`heat-${level}`}>${number || ""}<span class="unseen">${number ? "" : "0"}</span></td>`;
}
