"use strict";
// Shows the content of the page. Every text of it may be from outside: it becomes a text node, an
// attribute of its own or a label drawn on a canvas, and never markup or code.
(() => {
  const D = JSON.parse(document.getElementById("content").textContent);
  const T = D.texts;
  const text = (number) => T[number] || "";
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  // ---- Settings that a reader keeps

  const kept = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(`heartbeat.${name}`);
      localStorage.setItem(`heartbeat.${name}`, value);
    } catch { /* A file may have no storage. */ }
    return null;
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  let theme = kept("theme") || "auto";
  let isUtc = kept("zone") !== "local";
  const isDark = () => (theme === "auto" ? system.matches : theme === "dark");
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  // ---- Elements

  const h = (tag, props, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "class") element.className = value;
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
    return element;
  };
  const ICONS = {
    bad: "M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
    warn: "M8 1.8 15 14H1zM8 6.3v3.4M8 12v.1",
    run: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM6.6 5.4v5.2L10.8 8z",
    good: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM5 8.2l2.1 2.1L11 6.2",
    idle: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM8 4.4V8l2.4 1.6",
    mute: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM6.4 5.6v4.8M9.6 5.6v4.8",
    job: "M2 3.5h12v9H2zM2 6.5h12",
    upstream: "M2 4c0-3 12-3 12 0v8c0 3-12 3-12 0zM2 4c0 3 12 3 12 0M2 8c0 3 12 3 12 0",
  };
  const icon = (name, tone) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("class", `icon ${tone || ""}`);
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);
    return svg;
  };
  const JOB_STATES = {
    held: ["held", "bad"], backing_off: ["will retry", "warn"], starting: ["starting", "run"],
    running: ["running", "run"], ready: ["ready", "good"], waiting: ["waiting", "idle"],
    undecided: ["undecided", "mute"], paused: ["paused", "mute"], not_in_controls: ["no controls", "mute"],
  };
  const UPSTREAM_STATES = {
    unreadable: ["unreadable", "bad"], late: ["late", "warn"], ok: ["on time", "good"],
    quiet: ["no data yet", "idle"], paused: ["paused", "mute"],
  };
  const RUN_STATES = {
    SUCCEEDED: ["succeeded", "good"], SUCCEEDED_ELSEWHERE: ["succeeded elsewhere", "good"], STARTED: ["running", "run"],
    INTENDED: ["starting", "run"], ACQUIRED: ["acquired", "run"], RETRY_REQUESTED: ["failed, retried", "warn"],
    RELEASED: ["failed, released", "warn"],
  };
  const runState = (status) => RUN_STATES[status] || [words(status.toLowerCase()), "bad"];
  const words = (name) => name.replaceAll("_", " ");
  const badge = ([label, tone]) => h("span", { class: `state ${tone}` }, icon(tone), label);
  const bdi = (content) => h("bdi", {}, content);

  const BLOCKERS = {
    waiting_for_required_event: "waiting for an event", nothing_new: "nothing new", job_paused: "paused",
    required_row_paused: "behind a PAUSED row", over_start_limit: "over the limit of starts",
    on_own_schedule: "on its own schedule", last_run_failed: "last run failed",
    backing_off: "waiting for its retry", run_in_progress: "run in progress",
  };
  const BLOCKER_TONES = { last_run_failed: "bad", backing_off: "warn", run_in_progress: "run", job_paused: "mute", required_row_paused: "mute" };

  // ---- Instants: seconds after the beginning of the report

  const millis = (at) => (D.origin + at) * 1000;
  const pad = (number) => String(number).padStart(2, "0");
  const parts = (at) => {
    const date = new Date(millis(at));
    return isUtc
      ? [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
      : [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds()];
  };
  const day = (at) => { const [y, m, d] = parts(at); return `${y}-${pad(m)}-${pad(d)}`; };
  const clock = (at) => { const [, , , hour, minute] = parts(at); return `${pad(hour)}:${pad(minute)}`; };
  const zone = () => (isUtc ? "Z" : "");
  const instant = (at) => (at === null || at === undefined ? "–" : `${day(at)} ${clock(at)}${zone()}`);
  const brief = (at) => (day(at) === day(D.now) ? clock(at) + zone() : instant(at));
  const span = (seconds) => {
    const rest = Math.max(0, Math.round(seconds));
    const [d, hr, m, s] = [Math.floor(rest / 86400), Math.floor((rest % 86400) / 3600), Math.floor((rest % 3600) / 60), rest % 60];
    if (d) return hr && d < 10 ? `${d}d ${hr}h` : `${d}d`;
    if (hr) return m ? `${hr}h ${m}m` : `${hr}h`;
    if (m) return s && m < 10 ? `${m}m ${s}s` : `${m}m`;
    return `${s}s`;
  };
  const when = (at, suffix = "") =>
    at === null || at === undefined ? "–"
      : h("time", { datetime: new Date(millis(at)).toISOString(), title: instant(at) }, span(D.now - at) + suffix);
  const absolute = (at) =>
    at === null || at === undefined ? "–"
      : h("time", { datetime: new Date(millis(at)).toISOString(), title: span(D.now - at) + " ago" }, brief(at));
  const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many || one + "s"}`;

  // ---- The content, with what is derived from it

  const RUN = ["decided", "started", "ended", "status", "id", "attempt", "events", "message", "page", "consumed"];
  D.jobs.forEach((job, number) => {
    job.number = number;
    job.label = text(job.name) || job.id;
    job.runs = job.runs.map((row) => Object.fromEntries(RUN.map((name, at) => [name, row[at]])));
    job.runs.forEach((run) => { run.status = text(run.status); run.from = run.started ?? run.decided; });
    job.last = job.runs.at(-1);
  });
  D.upstreams.forEach((upstream, number) => {
    upstream.number = number;
    upstream.label = text(upstream.name);
    let at = 0;
    upstream.arrivals = upstream.arrivals.map((after) => (at += after));
    upstream.jobs = [];
  });
  D.jobs.forEach((job) => job.deps.forEach(([upstream, required, paused, about]) =>
    D.upstreams[upstream].jobs.push({ job, required, paused, about })));
  const jobById = new Map(D.jobs.map((job) => [job.id, job]));
  const jobLink = (job) => h("a", { href: `#/job/${job.id}` }, bdi(job.label));
  const upstreamLink = (upstream) => h("a", { href: `#/upstream/${upstream.number}` }, bdi(upstream.label));
  // A reason has the upstream's name as a word; what distinguishes two of one name follows a comma.
  const names = (reason, upstream) => [upstream.label, upstream.label.split(", ")[0]].some((name) => ` ${reason} `.includes(` ${name} `));
  const waitsFor = (upstream) => upstream.jobs.filter(({ job }) =>
    (job.now || []).some(([blocker, reason]) => text(blocker) === "waiting_for_required_event" && names(text(reason), upstream)));

  // ---- Charts

  let charts = [];
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
  const plot = (height, label, options, ready) => {
    const element = h("div", { class: "plot", role: "img", "aria-label": label });
    if (height) element.style.height = `${height}px`;
    charts.push({ element, options, ready, chart: null });
    return element;
  };
  const draw = () => {
    for (const each of charts) {
      if (!each.element.isConnected) continue;
      if (each.chart) each.chart.dispose();
      each.chart = echarts.init(each.element, null, { renderer: "canvas", useDirtyRect: false });
      each.chart.setOption(each.options());
      if (each.ready) each.ready(each.chart);
    }
  };
  const resized = new ResizeObserver(() => charts.forEach((each) => each.chart && each.chart.resize()));
  const base = () => ({
    animation: false, useUTC: isUtc, textStyle: { fontFamily: FONT, fontSize: 12 },
    tooltip: {
      renderMode: "richText", confine: true, backgroundColor: color("raised"), borderColor: color("line-strong"), borderWidth: 1,
      textStyle: { color: color("text"), fontSize: 12, fontFamily: FONT }, padding: [8, 10], extraCssText: "",
    },
  });
  const timeAxis = (from, to, more = {}) => ({
    type: "time", min: millis(from), max: millis(to), axisLine: { lineStyle: { color: color("line-strong") } },
    axisLabel: { color: color("muted"), hideOverlap: true, formatter: { year: "{yyyy}", month: "{MMM} {d}", day: "{MMM} {d}", hour: "{HH}:{mm}", minute: "{HH}:{mm}", second: "{HH}:{mm}:{ss}" } }, axisTick: { show: false }, splitLine: { show: false }, ...more,
  });
  const zoomBar = (axes) => [
    { type: "inside", xAxisIndex: axes, filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true },
    {
      type: "slider", xAxisIndex: axes, filterMode: "weakFilter", height: 16, bottom: 4, borderColor: "transparent", showDataShadow: false,
      backgroundColor: color("bg"), fillerColor: color("run-bg"), handleStyle: { color: color("surface"), borderColor: color("muted") },
      moveHandleSize: 0, showDetail: false, brushSelect: false, handleSize: "130%",
    },
  ];
  const wrapped = (content, width = 64) => {
    const lines = [];
    for (const paragraph of content.split("\n")) {
      let line = "";
      for (const word of paragraph.split(" ")) {
        if (line && (line + " " + word).length > width) { lines.push(line); line = ""; }
        line = line ? `${line} ${word}` : word;
      }
      lines.push(line);
    }
    // Braces and bars mean styles in this kind of text.
    return lines.slice(0, 12).map((line) => (line.length > 120 ? line.slice(0, 119) + "…" : line)).join("\n").replace(/[{}|]/g, (sign) => ({ "{": "(", "}": ")", "|": "/" })[sign]);
  };

  // ---- Tables and lists

  let expanders = [];
  const table = (columns, rows, { limit = 50, sort = null, empty = "Nothing here.", label = "" } = {}) => {
    let [by, down] = sort || [null, false];
    let shown = limit;
    const body = h("tbody");
    const more = h("button", { class: "more", type: "button", onclick: () => { shown = rows.length; fill(); } });
    const heads = columns.map((column, at) => {
      const order = h("span", { class: "order", "aria-hidden": "true" });
      const head = h("th", { scope: "col", class: classes(column) },
        h("button", { type: "button", onclick: () => { down = by === at ? !down : Boolean(column.down); by = at; fill(); } }, column.title, order));
      return { head, order };
    });
    const fill = () => {
      const sorted = by === null ? rows : [...rows].sort((a, b) => compare(columns[by].sort(a), columns[by].sort(b), down));
      body.replaceChildren(...sorted.slice(0, shown).map((row) =>
        h("tr", {}, columns.map((column) => h("td", { class: classes(column) }, column.cell(row))))));
      heads.forEach(({ head, order }, at) => {
        head.setAttribute("aria-sort", by === at ? (down ? "descending" : "ascending") : "none");
        order.textContent = by === at ? (down ? "↓" : "↑") : "";
      });
      more.hidden = shown >= rows.length;
      more.textContent = `Show all ${rows.length.toLocaleString("en")}`;
    };
    expanders.push(() => { shown = rows.length; fill(); });
    fill();
    if (!rows.length) return [h("div", { class: "empty" }, empty)];
    return [h("div", { class: "scroll" }, h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, heads.map(({ head }) => head))), body)), more];
  };
  const classes = (column) => [column.number && "number", column.wide && "wide", column.name && "name", column.tight && "tight"].filter(Boolean).join(" ") || null;
  // What has no value comes last in either direction.
  const compare = (a, b, down) => {
    const [hasA, hasB] = [a !== null && a !== undefined, b !== null && b !== undefined];
    if (!hasA || !hasB) return Number(hasB) - Number(hasA);
    return (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b) * (down ? -1 : 1);
  };
  const card = (title, sub, right, ...content) =>
    h("section", { class: "card long" }, h("div", { class: "head" }, h("h2", {}, title), sub && h("span", { class: "sub" }, sub), right && h("div", { class: "right" }, right)), ...content);
  const clamp = (content) => h("div", { class: "clamp", title: content || null }, bdi(content));
  const empty = (strong, rest) => h("div", { class: "empty" }, h("strong", {}, strong), rest);
  const legend = (...items) => h("div", { class: "legend" }, items.map(([tone, label, dot]) => h("span", {}, h("i", { class: `swatch ${tone} ${dot ? "dot" : ""}` }), label)));

  // ---- Overview

  const overview = () => {
    const of = (...states) => D.jobs.filter((job) => states.includes(job.state));
    const bad = D.attention.length;
    if (!D.jobs.length && !bad) {
      return [h("h1", {}, "Nothing to show yet"), h("section", { class: "card" }, h("div", { class: "empty" },
        h("strong", {}, "The controls have no job"), "Add a row to ", h("code", {}, "seeds/heartbeat_controls.csv"), ", then run ", h("code", {}, "heartbeat tick"), "."))];
    }
    const dayAgo = D.now - 86400;
    const starts = D.jobs.flatMap((job) => job.runs.map((run) => ({ job, run }))).sort((a, b) => b.run.decided - a.run.decided);
    const recent = starts.filter(({ run }) => run.decided >= dayAgo);
    const covered = Math.min(86400, D.now);
    const tile = (label, number, tone, href) =>
      h("a", { class: `tile ${number ? "" : "zero"}`, href }, h("div", { class: "label" }, icon(tone, number ? tone : "mute"), label), h("div", { class: "value" }, number.toLocaleString("en")));
    const running = of("running", "starting");
    return [
      h("h1", {}, bad ? `${count(bad, "thing needs", "things need")} attention` : "All is well"),
      h("div", { class: "tiles" },
        tile("Needs attention", bad, bad ? "bad" : "good", "#/"),
        tile("Held jobs", of("held").length, "bad", "#/jobs?held"),
        tile("Running", running.length, "run", "#/jobs?running"),
        tile("Waiting", of("waiting", "ready", "undecided", "backing_off").length, "idle", "#/jobs?waiting"),
        tile("Paused", of("paused").length, "mute", "#/jobs?paused"),
        tile(covered < 86000 ? `Starts, ${span(covered)}` : "Starts, 24 h", recent.length, "good", "#/jobs")),
      activity(),
      h("div", { class: "columns" },
        h("div", {}, problems(), startedCard(starts)),
        h("div", {}, runningCard(running), waitingCard())),
      ...modelCards(),
    ];
  };

  const activity = () => {
    const { step, events, starts, failed } = D.activity;
    const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
    const sub = `${count(sum(events), "event")}, ${count(sum(starts), "start")} in ${span(D.now)}`;
    const series = (name, numbers, tone, axis) => ({
      name, type: "bar", xAxisIndex: axis, yAxisIndex: axis, barCategoryGap: "22%", itemStyle: { color: color(`${tone}-fill`), borderRadius: [1.5, 1.5, 0, 0] },
      data: numbers.map((value, at) => [millis(at * step + step / 2), value]),
    });
    const grid = (top, height) => ({ left: 56, right: 14, top, height, outerBoundsMode: "none" });
    const yAxis = (name, at) => ({
      gridIndex: at, type: "value", minInterval: 1, splitNumber: 2, name, nameLocation: "middle", nameGap: 36, nameTextStyle: { color: color("muted") },
      axisLabel: { color: color("muted"), showMaxLabel: true }, splitLine: { lineStyle: { color: color("line") } },
    });
    const options = () => ({
      ...base(),
      grid: [grid(8, 58), grid(82, 58)],
      xAxis: [timeAxis(0, D.now, { gridIndex: 0, axisLabel: { show: false } }), timeAxis(0, D.now, { gridIndex: 1 })],
      yAxis: [yAxis("events", 0), yAxis("starts", 1)],
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: color("line-strong") } },
      tooltip: {
        ...base().tooltip, trigger: "axis",
        formatter: (points) => {
          const at = Math.min(events.length - 1, Math.floor((points[0].value[0] / 1000 - D.origin) / step));
          const lines = [`${brief(at * step)} – ${brief((at + 1) * step)}`, count(events[at], "event"), count(starts[at], "start")];
          if (failed[at]) lines.push(count(failed[at], "failed probe"));
          return lines.join("\n");
        },
      },
      series: [series("events", events, "run", 0), series("starts", starts, "good", 1)],
    });
    return card("Activity", sub, legend(["run", "events found"], ["good", "jobs started"]),
      h("div", { class: "body chart" }, plot(172, `Activity: ${sub}`, options)));
  };

  const TROUBLE_ORDER = 8;
  const problems = () => {
    const list = h("ul", { class: "problems" });
    const item = (each) => {
      const job = each.job === undefined ? null : D.jobs[each.job];
      const upstream = each.upstream === undefined ? null : D.upstreams[each.upstream];
      const waiting = upstream ? waitsFor(upstream).length : 0;
      const why = upstream && text(each.what) === "late"
        ? `quiet for ${span((D.ticked ?? D.now) - upstream.latest)}; it usually has new data every ${span(upstream.usual)}`
        : text(each.why);
      return h("li", {},
        h("div", {}, badge([text(each.what), each.bad ? "bad" : "warn"])),
        h("div", { class: "text" },
          h("div", { class: "who" }, job ? jobLink(job) : upstream ? upstreamLink(upstream) : bdi(text(each.subject)),
            waiting ? h("span", { class: "muted" }, ` · ${count(waiting, "job waits", "jobs wait")}`) : null),
          h("div", { class: "why", title: why }, bdi(why))),
        h("div", { class: "since" }, when(each.since)));
    };
    let shown = TROUBLE_ORDER;
    const more = h("button", { class: "more", type: "button", onclick: () => { shown = D.attention.length; fill(); } });
    const fill = () => {
      list.replaceChildren(...D.attention.slice(0, shown).map(item));
      more.hidden = shown >= D.attention.length;
      more.textContent = `Show all ${D.attention.length.toLocaleString("en")}`;
    };
    expanders.push(() => { shown = D.attention.length; fill(); });
    fill();
    return card("Needs attention", null, null, D.attention.length ? list : empty("Nothing needs you", "No job is held, every upstream can be read and is on time."), more);
  };

  const startedCard = (starts) => card("Started recently", starts.length ? null : "", null, ...table([
    { title: "Job", name: true, cell: ({ job }) => jobLink(job), sort: ({ job }) => job.label },
    { title: "Started", tight: true, down: true, cell: ({ run }) => absolute(run.from), sort: ({ run }) => run.from },
    { title: "Outcome", cell: ({ run }) => badge(runState(run.status)), sort: ({ run }) => run.status },
    { title: "Took", number: true, wide: true, cell: ({ run }) => (run.ended === null ? (isOpen(run) ? span(D.now - run.from) : "–") : span(run.ended - run.from)), sort: ({ run }) => (run.ended ?? D.now) - run.from },
    { title: "Events", number: true, wide: true, down: true, cell: ({ run }) => run.events, sort: ({ run }) => run.events },
  ], starts.slice(0, 200), { limit: 10, label: "Started recently", empty: `No job was started since ${instant(0)}.` }));

  const isOpen = (run) => ["STARTED", "INTENDED", "ACQUIRED"].includes(run.status);

  const runningCard = (running) => card("Running now", running.length ? String(running.length) : null, null, ...table([
    { title: "Job", name: true, cell: (job) => jobLink(job), sort: (job) => job.label },
    { title: "For", number: true, down: true, cell: (job) => when(job.since), sort: (job) => D.now - job.since },
    { title: "Usually", number: true, cell: (job) => { const usual = median(durations(job)); return usual === null ? "–" : span(usual); }, sort: (job) => median(durations(job)) },
  ], running, { limit: 8, sort: [1, true], label: "Running now", empty: "No job is running." }));

  const durations = (job) => job.runs.filter((run) => run.ended !== null && runState(run.status)[1] === "good").map((run) => run.ended - run.from);
  const median = (numbers) => { const sorted = [...numbers].sort((a, b) => a - b); return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null; };

  const waitingCard = () => {
    const waiting = D.jobs.filter((job) => ["waiting", "ready", "backing_off", "undecided"].includes(job.state));
    const groups = new Map();
    waiting.forEach((job) => groups.set(text(job.blocker), (groups.get(text(job.blocker)) || 0) + 1));
    const sub = [...groups].sort((a, b) => b[1] - a[1]).map(([name, number]) => `${number.toLocaleString("en")} ${BLOCKERS[name] || words(name) || "undecided"}`).join(", ");
    return card("Waiting, and why", sub, null, ...table([
      { title: "Job", name: true, cell: (job) => jobLink(job), sort: (job) => job.label },
      { title: "Why not", cell: (job) => clamp(text(job.why) || JOB_STATES[job.state][0]), sort: (job) => text(job.why) },
      { title: "Since", number: true, down: true, cell: (job) => when(job.since), sort: (job) => (job.since === null ? null : D.now - job.since) },
    ], waiting, { limit: 10, sort: [2, true], label: "Waiting", empty: "No job waits." }));
  };

  const BATCH_STATES = { COMPLETE: ["complete", "good"], FAILED: ["failed", "bad"], UNLOADED: ["unloaded", "mute"] };
  const batchState = (state) => BATCH_STATES[state] || [words(state.toLowerCase()), "run"];
  const waitingPartitions = (backlog) => (backlog === null ? "–" : !backlog[0] ? "none" : h("span", {}, `${backlog[0].toLocaleString("en")}, oldest `, bdi(text(backlog[1]))));
  const modelCards = () => {
    const name = ({ model }) => bdi(text(model.name));
    const byName = ({ model }) => text(model.name);
    const broken = D.models.filter((model) => text(model.problem)).map((model) => h("p", { class: "lead" }, bdi(text(model.name)), ": ", bdi(text(model.problem))));
    const batches = D.models.flatMap((model) => model.batches.map(([number, state, received, recorded, rows, message]) => ({ model, number, state: text(state), received, recorded, rows, message: text(message) })));
    const sources = D.models.flatMap((model) => model.sources.map(([source, partitions, taken, newer, sensed, backlog]) => ({ model, source: text(source), partitions, taken, newer, sensed, backlog })));
    return [
      batches.length ? card("Refresh models", count(batches.length, "batch", "batches"), null, ...table([
        { title: "Model", name: true, cell: name, sort: byName },
        { title: "Batch", number: true, down: true, cell: (each) => each.number, sort: (each) => each.number },
        { title: "State", tight: true, cell: (each) => badge(batchState(each.state)), sort: (each) => each.state },
        { title: "Received", tight: true, wide: true, down: true, cell: (each) => absolute(each.received), sort: (each) => each.received },
        { title: "Rows", number: true, down: true, cell: (each) => (each.rows === null ? "–" : each.rows.toLocaleString("en")), sort: (each) => each.rows },
        { title: "Message", wide: true, cell: (each) => clamp(each.message), sort: (each) => each.message },
      ], batches, { limit: 10, label: "Refresh models", empty: "" })) : null,
      sources.length ? card("Self-healing models", null, null, ...table([
        { title: "Model", name: true, cell: name, sort: byName },
        { title: "Source", name: true, cell: (each) => bdi(each.source), sort: (each) => each.source },
        { title: "Partitions consumed", number: true, wide: true, down: true, cell: (each) => each.partitions.toLocaleString("en"), sort: (each) => each.partitions },
        { title: "Last consumed", number: true, cell: (each) => when(each.taken, " ago"), sort: (each) => (each.taken === null ? null : D.now - each.taken) },
        { title: "Waiting", number: true, down: true, cell: (each) => waitingPartitions(each.backlog), sort: (each) => each.backlog && each.backlog[0] },
        { title: "Newer data", number: true, down: true, cell: (each) => (each.newer !== null ? when(each.newer, " ago") : each.sensed ? "none" : "not sensed"), sort: (each) => each.newer },
      ], sources, { limit: 10, label: "Self-healing models", empty: "" })) : null,
      ...broken,
    ];
  };

  // ---- Jobs and upstreams

  const listing = (title, all, states, groups, columns, wanted, sort) => {
    let filter = "";
    let state = groups.some(([name]) => name === wanted) ? wanted : null;
    const place = h("section", { class: "card long" });
    const input = h("input", { class: "filter", type: "search", placeholder: "Filter by name", "aria-label": `Filter ${title.toLowerCase()}`, oninput: () => { filter = input.value.toLowerCase(); fill(); } });
    const chips = groups.map(([name, label, members, tone]) => {
      const number = all.filter((each) => members.includes(each.state)).length;
      return { name, members, element: number ? h("button", { class: "chip", type: "button", onclick: () => { state = state === name ? null : name; fill(); } }, icon(tone, tone), label, h("b", {}, number.toLocaleString("en"))) : null };
    });
    const results = h("div");
    const fill = () => {
      chips.forEach(({ name, element }) => element && element.setAttribute("aria-pressed", String(state === name)));
      const members = chips.find(({ name }) => name === state)?.members;
      const rows = all.filter((each) => (!members || members.includes(each.state)) && (!filter || each.label.toLowerCase().includes(filter) || (each.id || "").includes(filter)));
      expanders = [];
      results.replaceChildren(...table(columns, rows, { limit: 60, sort, label: title, empty: "No match." }));
    };
    place.append(h("div", { class: "head" }, h("div", { class: "filters" }, chips.map(({ element }) => element)), h("div", { class: "right" }, input)), results);
    fill();
    return [h("h1", {}, title, " ", h("span", { class: "muted" }, all.length.toLocaleString("en"))), place];
  };

  const jobRank = Object.keys(JOB_STATES);
  const jobs = (wanted) => listing("Jobs", D.jobs, JOB_STATES, [
    ["held", "held", ["held"], "bad"], ["retry", "will retry", ["backing_off"], "warn"], ["running", "running", ["running", "starting"], "run"],
    ["ready", "ready", ["ready"], "good"], ["waiting", "waiting", ["waiting", "undecided", "ready", "backing_off"], "idle"], ["paused", "paused", ["paused"], "mute"],
  ], [
    { title: "State", tight: true, cell: (job) => badge(JOB_STATES[job.state]), sort: (job) => jobRank.indexOf(job.state) },
    { title: "Job", name: true, cell: (job) => jobLink(job), sort: (job) => job.label },
    { title: "Id", wide: true, cell: (job) => h("span", { class: "mono muted" }, job.id), sort: (job) => job.id },
    { title: "Why", cell: (job) => clamp(text(job.why)), sort: (job) => text(job.why) },
    { title: "Since", number: true, down: true, cell: (job) => when(job.since), sort: (job) => (job.since === null ? null : D.now - job.since) },
    { title: "Last run", wide: true, tight: true, cell: (job) => (job.last ? h("span", { title: runState(job.last.status)[0] }, icon(runState(job.last.status)[1], runState(job.last.status)[1]), " ", absolute(job.last.from)) : "–"), sort: (job) => job.last?.from },
    { title: "Upstreams", number: true, wide: true, down: true, cell: (job) => job.deps.length, sort: (job) => job.deps.length },
  ], wanted, [0, false]);

  const upstreamRank = Object.keys(UPSTREAM_STATES);
  const upstreams = (wanted) => listing("Upstreams", D.upstreams, UPSTREAM_STATES,
    upstreamRank.map((name) => [name, UPSTREAM_STATES[name][0], [name], UPSTREAM_STATES[name][1]]), [
      { title: "State", tight: true, cell: (each) => badge(UPSTREAM_STATES[each.state]), sort: (each) => upstreamRank.indexOf(each.state) },
      { title: "Upstream", name: true, cell: (each) => [upstreamLink(each), text(each.about) ? h("div", { class: "muted" }, bdi(text(each.about))) : null], sort: (each) => each.label },
      { title: "Source", wide: true, cell: (each) => h("span", { class: "mono muted" }, text(each.source)), sort: (each) => text(each.source) },
      { title: "New data", number: true, cell: (each) => when(each.latest, " ago"), sort: (each) => (each.latest === null ? null : D.now - each.latest) },
      { title: "Usually every", number: true, wide: true, cell: (each) => (each.usual === null ? "–" : span(each.usual)), sort: (each) => each.usual },
      { title: "Arrivals", number: true, wide: true, down: true, cell: (each) => each.arrivals.length.toLocaleString("en"), sort: (each) => each.arrivals.length },
      { title: "Jobs", number: true, down: true, cell: (each) => each.jobs.length, sort: (each) => each.jobs.length },
    ], wanted, [0, false]);

  // ---- One job

  const fact = (term, value, small) => h("div", {}, h("dt", {}, term), h("dd", {}, value, small ? [" ", h("small", {}, small)] : null));
  const missing = (what) => [h("h1", {}, `There is no such ${what}`), h("p", { class: "lead" }, `The page covers what the controls have now. `, h("a", { href: `#/${what}s` }, `All ${what}s`))];

  const jobPage = (id, query) => {
    const job = jobById.get(id);
    if (!job) return missing("job");
    const runs = [...job.runs].reverse();
    const ended = job.runs.filter((run) => run.ended !== null);
    const good = ended.filter((run) => runState(run.status)[1] === "good");
    const usual = median(durations(job));
    const lastGood = good.at(-1);
    const panel = whyNot(job);
    return [
      h("div", {},
        h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs"), " / "),
        h("div", { class: "title" }, h("h1", {}, bdi(job.label)), badge(JOB_STATES[job.state]), h("span", { class: "id" }, job.id)),
        h("p", { class: "lead" }, bdi(text(job.why)))),
      h("dl", { class: "facts" },
        fact("In this state for", when(job.since)),
        fact("Last start", job.last ? absolute(job.last.from) : "–", job.last ? runState(job.last.status)[0] : null),
        fact("Last success", lastGood ? absolute(lastGood.ended) : "–"),
        fact("Usually takes", usual === null ? "–" : span(usual), usual === null ? "" : "median"),
        fact(`Runs in ${span(D.now)}`, job.runs.length.toLocaleString("en"), ended.length ? `${Math.round((100 * good.length) / ended.length)} % succeeded` : "")),
      timeline(job, panel),
      panel.element,
      card("Runs", null, null, ...table([
        { title: "Outcome", tight: true, cell: (run) => badge(runState(run.status)), sort: (run) => run.status },
        { title: "Run", tight: true, cell: (run) => runLink(run), sort: (run) => run.id },
        { title: "Started", tight: true, down: true, cell: (run) => absolute(run.from), sort: (run) => run.from },
        { title: "Took", number: true, down: true, cell: (run) => (run.ended === null ? (isOpen(run) ? span(D.now - run.from) : "–") : span(run.ended - run.from)), sort: (run) => (run.ended ?? D.now) - run.from },
        { title: "Attempt", number: true, wide: true, down: true, cell: (run) => run.attempt, sort: (run) => run.attempt },
        { title: "Events", number: true, wide: true, down: true, cell: (run) => run.events, sort: (run) => run.events },
        { title: "Consumed events of", wide: true, cell: (run) => clamp(run.consumed.map((each) => D.upstreams[each].label).join(", ")), sort: (run) => run.consumed.length },
        { title: "Message", cell: (run) => clamp(text(run.message)), sort: (run) => text(run.message) },
      ], runs, { limit: 20, label: "Runs", empty: "It was not started in the time that the page covers." })),
      card("Upstreams", count(job.deps.length, "dependency", "dependencies"), null, ...table([
        { title: "State", tight: true, cell: ([at]) => badge(UPSTREAM_STATES[D.upstreams[at].state]), sort: ([at]) => upstreamRank.indexOf(D.upstreams[at].state) },
        { title: "Upstream", name: true, cell: ([at, , , about]) => [upstreamLink(D.upstreams[at]), text(about) ? h("div", { class: "muted" }, bdi(text(about))) : null], sort: ([at]) => D.upstreams[at].label },
        { title: "Dependency", tight: true, cell: ([, required, paused]) => (required ? "hard" : "soft") + (paused ? ", PAUSED" : ""), sort: ([, required]) => -required },
        { title: "New data", number: true, cell: ([at]) => when(D.upstreams[at].latest, " ago"), sort: ([at]) => D.upstreams[at].latest },
        { title: "Usually every", number: true, wide: true, cell: ([at]) => (D.upstreams[at].usual === null ? "–" : span(D.upstreams[at].usual)), sort: ([at]) => D.upstreams[at].usual },
      ], job.deps, { label: "Upstreams", empty: "It has no upstream." })),
    ];
  };

  const runLink = (run) => {
    const page = text(run.page).replaceAll("{run}", run.id || "");
    const label = run.id || "no run";
    return /^https?:\/\//i.test(page)
      ? h("a", { href: page, rel: "noopener noreferrer", target: "_blank", class: "mono" }, label)
      : h("span", { class: "mono muted" }, label);
  };

  const MOST_LANES = 10;
  const timeline = (job, panel) => {
    const lanes = job.deps.slice(0, MOST_LANES).map(([at]) => D.upstreams[at]);
    const names = ["why not", "runs", ...lanes.map((each) => each.label).reverse()];
    const height = 30 * names.length;
    const runsData = job.runs.map((run, at) => [millis(run.from), millis(run.ended ?? (isOpen(run) ? D.now : run.from)), 1, at]);
    const reasons = reasonsOf(job);
    const reasonData = reasons.map((each, at) => [millis(each.from), millis(each.to), 0, at]);
    const arrivals = lanes.flatMap((upstream, lane) => upstream.arrivals.map((at, number) => [millis(at), names.length - 1 - lane, upstream.number, number]));
    const block = (tones, inset) => (params, api) => {
      const at = params.dataIndex;
      const [x, y] = api.coord([api.value(0), api.value(2)]);
      const [end] = api.coord([api.value(1), api.value(2)]);
      const tall = api.size([0, 1])[1];
      const left = Math.max(x, params.coordSys.x);
      const right = Math.min(Math.max(end, x + 2), params.coordSys.x + params.coordSys.width);
      if (right <= left) return null;
      const tone = tones(at);
      const bar = { type: "rect", shape: { x: left, y: y - tall * inset, width: right - left, height: tall * inset * 2, r: Math.min(2, (right - left) / 3) }, style: { fill: color(`${tone}-fill`) } };
      // Not by colour alone: what failed stands out above its lane.
      if (tone !== "bad" || inset < 0.3) return bar;
      const mark = { type: "text", style: { text: "✕", x: (left + right) / 2, y: y - tall * inset - 1, align: "center", verticalAlign: "bottom", fill: color("bad"), font: `bold 10px ${FONT}` } };
      return { type: "group", children: [bar, mark] };
    };
    const options = () => ({
      ...base(),
      grid: { left: 8, right: 14, top: 10, height, containLabel: true },
      xAxis: timeAxis(0, D.now),
      yAxis: {
        type: "category", data: names, axisTick: { show: false }, axisLine: { show: false }, splitArea: { show: true, areaStyle: { color: ["transparent", color("bg")] } },
        axisLabel: { color: color("text"), width: Math.min(190, innerWidth / 4), overflow: "truncate", fontSize: 12 },
      },
      dataZoom: zoomBar([0]),
      tooltip: {
        ...base().tooltip, trigger: "item",
        formatter: (point) => {
          if (point.seriesIndex === 0) {
            const run = job.runs[point.value[3]];
            const took = run.ended === null ? (isOpen(run) ? `goes on for ${span(D.now - run.from)}` : "") : `took ${span(run.ended - run.from)}`;
            return wrapped([`run ${run.id || "–"}: ${runState(run.status)[0]}`, `${instant(run.from)}, ${took}, ${count(run.events, "event")}`, text(run.message)].filter(Boolean).join("\n"));
          }
          if (point.seriesIndex === 1) {
            const reason = reasons[point.value[3]];
            return wrapped([`${instant(reason.from)} – ${instant(reason.to)}`, ...reason.blockers.map((each) => text(each[1]))].join("\n"));
          }
          const upstream = D.upstreams[point.value[2]];
          return wrapped(`${upstream.label}\n${instant(upstream.arrivals[point.value[3]])}: ${count(upstream.counts[point.value[3]], "event")}`);
        },
      },
      series: [
        { type: "custom", renderItem: block((at) => runState(job.runs[at].status)[1], 0.34), data: runsData, encode: { x: [0, 1], y: 2 }, clip: true },
        { type: "custom", renderItem: block((at) => toneOf(reasons[at].blockers), 0.2), data: reasonData, encode: { x: [0, 1], y: 2 }, clip: true,
          markLine: { silent: true, symbol: "none", animation: false, label: { show: false }, lineStyle: { color: color("text"), type: "solid", width: 1.5 }, data: [{ xAxis: millis(panel.at()) }] } },
        { type: "scatter", symbolSize: 6, data: arrivals, itemStyle: { color: color("run-fill"), opacity: 0.85 }, large: false },
      ],
    });
    const ready = (chart) => {
      chart.getZr().on("click", (event) => {
        if (!chart.containPixel("grid", [event.offsetX, event.offsetY])) return;
        panel.show(chart.convertFromPixel({ xAxisIndex: 0 }, event.offsetX) / 1000 - D.origin);
      });
      panel.onshow = (at) => chart.setOption({ series: [{}, { markLine: { data: [{ xAxis: millis(at) }] } }] });
    };
    const hidden = job.deps.length - lanes.length;
    const sub = hidden > 0 ? `${hidden} more upstreams below` : null;
    return card("Timeline", sub, legend(["run", "new data", true], ["good", "succeeded"], ["bad", "failed ✕"], ["run", "running"], ["idle", "waited"]),
      h("div", { class: "body chart" }, plot(height + 62, `Timeline of ${job.label}: ${count(job.runs.length, "run")}, ${count(arrivals.length, "arrival")} of new data; the tables below have the same`, options, ready)));
  };
  const toneOf = (blockers) => {
    const tones = blockers.map((each) => BLOCKER_TONES[text(each[0])] || "idle");
    return ["bad", "warn", "run", "idle", "mute"].find((tone) => tones.includes(tone)) || "good";
  };
  const reasonsOf = (job) => {
    if (!job.decisions.length) return job.now && job.now.length ? [{ from: 0, to: D.now, blockers: job.now }] : [];
    return job.decisions.map(([from, ...blockers], at) => ({ from, to: job.decisions[at + 1]?.[0] ?? D.now, blockers })).filter((each) => each.blockers.length);
  };

  // ---- Why not, at any instant of the past

  const whyNot = (job) => {
    let at = D.now;
    const panel = { at: () => at, onshow: () => {} };
    const changes = [...new Set([...job.decisions.map((each) => each[0]), ...job.runs.flatMap((run) => [run.from, run.ended])])].filter((each) => each !== null && each >= 0).sort((a, b) => a - b);
    const slider = h("input", { type: "range", min: 0, max: D.now, step: 1, "aria-label": "Instant", oninput: () => panel.show(Number(slider.value)) });
    const input = h("input", { class: "field", type: "datetime-local", step: 60, "aria-label": `Date and time (${isUtc ? "UTC" : "local"})`, onchange: () => {
      const read = Date.parse(input.value + (isUtc ? "Z" : ""));
      if (!Number.isNaN(read)) panel.show(read / 1000 - D.origin);
    } });
    const jump = (label, next) => h("button", { class: "button", type: "button", onclick: () => { const found = next(); if (found !== undefined) panel.show(found); } }, label);
    const answer = h("div", { class: "answer", "aria-live": "polite" });
    panel.show = (wanted) => {
      at = Math.round(Math.min(D.now, Math.max(0, wanted)));
      slider.value = at;
      slider.setAttribute("aria-valuetext", instant(at));
      input.value = `${day(at)}T${clock(at)}`;
      answer.replaceChildren(...explained(job, at));
      panel.onshow(at);
    };
    panel.element = h("section", { class: "card whynot" },
      h("div", { class: "head" }, h("h2", {}, "Why not?"), h("span", { class: "sub" }, "as any past tick decided it: move the slider, or click into the timeline")),
      h("div", { class: "body" },
        h("div", { class: "controls" }, input, slider,
          jump("‹ Change before", () => changes.filter((each) => each < at).at(-1)),
          jump("Next change ›", () => changes.find((each) => each > at)),
          jump("Now", () => D.now)),
        answer));
    panel.show(D.now);
    return panel;
  };
  const explained = (job, at) => {
    const decision = job.decisions.filter(([from]) => from <= at).at(-1);
    const run = job.runs.filter((each) => each.from <= at && (each.ended === null ? isOpen(each) : each.ended > at)).at(-1);
    const head = (state, ...rest) => h("div", { class: "verdict" }, badge(state), ...rest);
    const asOf = h("span", { class: "muted" }, instant(at));
    if (!decision && (job.decisions.length || job.now === null)) {
      const command = `heartbeat explain ${job.id} --at ${new Date(millis(at)).toISOString().slice(0, 16)}Z`;
      return [head(["not in this page", "mute"], asOf), h("p", {}, job.now === null && !job.decisions.length ? "No tick has decided about the job." : "The page has no earlier decision about the job; the ledgers do: ", h("code", { class: "command" }, command))];
    }
    const blockers = decision ? decision.slice(1) : job.now;
    const running = run ? h("span", {}, "run ", runLink(run), ` had been going on for ${span(at - run.from)}`) : null;
    if (!blockers.length) return [head(run ? ["started", "run"] : ["nothing against it", "good"], running, asOf), h("p", {}, `No reason against a start${decision ? ` at ${instant(decision[0])}: it was started` : ""}.`)];
    const tone = toneOf(blockers);
    const label = { bad: "held", warn: "will retry", run: "running", idle: "waiting", mute: "paused" }[tone];
    return [
      head([label, tone], running, asOf),
      h("ol", {}, blockers.map(([name, reason, waits, since]) => h("li", {},
        h("div", {}, h("b", {}, BLOCKERS[text(name)] || words(text(name))), ": ", bdi(text(reason))),
        h("div", { class: "muted" }, text(waits) ? ["waits for ", bdi(text(waits))] : "", since === null ? "" : `${text(waits) ? "; " : ""}since ${instant(since)}`)))),
    ];
  };

  // ---- One upstream

  const upstreamPage = (number) => {
    const upstream = D.upstreams[number];
    if (!upstream) return missing("upstream");
    const quiet = upstream.latest === null ? null : (D.ticked ?? D.now) - upstream.latest;
    const waiting = waitsFor(upstream).map(({ job }) => job);
    const sentence = {
      unreadable: text(upstream.why), late: `Quiet for ${span(quiet || 0)}, longer than its rhythm allows.`, ok: upstream.usual === null ? "It has had too few arrivals for a rhythm yet." : "It has new data as often as usual.",
      quiet: "Nothing was found in it yet.", paused: "All its rows are PAUSED: it is not probed.",
    }[upstream.state];
    const settings = [["Read type", text(upstream.type)], ["Upstream key", text(upstream.key)]].filter(([, value]) => value);
    const rows = upstream.arrivals.map((at, place) => ({ at, events: upstream.counts[place], gap: place ? at - upstream.arrivals[place - 1] : null, hole: upstream.gaps.includes(place) })).reverse();
    return [
      h("div", {},
        h("p", { class: "crumbs" }, h("a", { href: "#/upstreams" }, "Upstreams"), " / ", h("span", { class: "mono" }, text(upstream.source))),
        h("div", { class: "title" }, h("h1", {}, bdi(upstream.label)), badge(UPSTREAM_STATES[upstream.state])),
        h("p", { class: "lead" }, text(upstream.about) ? [bdi(text(upstream.about)), ". "] : null, bdi(sentence))),
      h("dl", { class: "facts" },
        fact("Last new data", upstream.latest === null ? "–" : when(upstream.latest, " ago")),
        fact("Usually every", upstream.usual === null ? "–" : span(upstream.usual), upstream.usual === null ? "fewer than 9 arrivals" : "nine gaps in ten"),
        fact("Late after", upstream.late_after === null ? "–" : span(upstream.late_after), upstream.late_after === null ? "" : "of quiet"),
        fact(`Arrivals in ${span(D.now)}`, upstream.arrivals.length.toLocaleString("en")),
        fact("Jobs", upstream.jobs.length.toLocaleString("en"), waiting.length ? `${waiting.length} ${waiting.length === 1 ? "waits" : "wait"} for it` : "none waits for it"),
        settings.map(([term, value]) => fact(term, bdi(value)))),
      rhythm(upstream, quiet),
      text(upstream.query) ? card("Preprocess query", null, null, h("div", { class: "body" }, h("pre", { class: "query" }, text(upstream.query)))) : null,
      upstream.unreadable.length ? card("Failed probes", null, null, ...table([
        { title: "From", tight: true, down: true, cell: ([from]) => absolute(from), sort: ([from]) => from },
        { title: "Until", tight: true, cell: ([, until]) => (until === null ? badge(["goes on", "bad"]) : absolute(until)), sort: ([, until]) => until },
        { title: "Why", cell: ([, , why]) => bdi(text(why)), sort: ([, , why]) => text(why) },
      ], [...upstream.unreadable].reverse(), { limit: 10, label: "Failed probes" })) : null,
      h("div", { class: "columns" },
        h("div", {}, card("Jobs", null, null, ...table([
          { title: "State", tight: true, cell: ({ job }) => badge(JOB_STATES[job.state]), sort: ({ job }) => jobRank.indexOf(job.state) },
          { title: "Job", name: true, cell: ({ job }) => jobLink(job), sort: ({ job }) => job.label },
          { title: "Dependency", tight: true, wide: true, cell: ({ required, paused }) => (required ? "hard" : "soft") + (paused ? ", PAUSED" : ""), sort: ({ required }) => -required },
          { title: "Waits for it", tight: true, cell: ({ job }) => (waiting.includes(job) ? "yes" : "no"), sort: ({ job }) => (waiting.includes(job) ? 0 : 1) },
        ], upstream.jobs, { limit: 20, sort: [3, false], label: "Jobs" }))),
        h("div", {}, card("Arrivals", null, null, ...table([
          { title: "Found", tight: true, down: true, cell: ({ at }) => absolute(at), sort: ({ at }) => at },
          { title: "Events", number: true, down: true, cell: ({ events, hole }) => [events, hole ? h("span", { class: "warn", title: "Events before it may be missing" }, " gap") : null], sort: ({ events }) => events },
          { title: "After", number: true, down: true, cell: ({ gap }) => (gap === null ? "–" : span(gap)), sort: ({ gap }) => gap },
        ], rows, { limit: 12, label: "Arrivals", empty: "Nothing was found in the time that the page covers." })))),
    ];
  };

  const rhythm = (upstream, quiet) => {
    if (upstream.arrivals.length < 2) return card("Arrivals and gaps", null, null, empty("Too few arrivals to show a rhythm", `The page covers ${span(D.now)}.`));
    const gaps = upstream.arrivals.slice(1).map((at, place) => [millis(at), (at - upstream.arrivals[place]) / 60, place + 1]);
    const end = D.ticked ?? D.now;
    const isNarrow = innerWidth < 820;
    const right = isNarrow ? 18 : 122;
    const line = (value, name, tone, type) => ({ yAxis: value / 60, name, lineStyle: { color: color(tone), type, width: 1.5 }, label: { formatter: `${name} ${span(value)}`, distance: 6, color: color(tone === "muted" ? "muted" : "warn"), position: isNarrow ? "insideEndTop" : "end", fontSize: 11 } });
    const options = () => ({
      ...base(),
      grid: [{ left: 78, right, top: 16, height: 150, outerBoundsMode: "none" }, { left: 78, right, top: 190, height: 46, outerBoundsMode: "none" }],
      xAxis: [timeAxis(0, D.now, { gridIndex: 0, axisLabel: { show: false } }), timeAxis(0, D.now, { gridIndex: 1 })],
      yAxis: [
        { type: "value", min: 0, max: (value) => Math.max(value.max, (upstream.late_after || 0) / 60, (quiet || 0) / 60) * 1.08, splitNumber: 3, axisLabel: { color: color("muted"), showMaxLabel: false, formatter: (minutes) => (minutes ? span(minutes * 60) : "0") }, splitLine: { lineStyle: { color: color("line") } }, name: "gap", nameLocation: "middle", nameGap: 56, nameTextStyle: { color: color("muted") } },
        { gridIndex: 1, type: "value", minInterval: 1, splitNumber: 1, axisLabel: { color: color("muted") }, splitLine: { lineStyle: { color: color("line") } }, name: "events", nameLocation: "middle", nameGap: 56, nameTextStyle: { color: color("muted") } },
      ],
      dataZoom: zoomBar([0, 1]),
      tooltip: {
        ...base().tooltip, trigger: "item",
        formatter: (point) => {
          if (point.seriesIndex === 1) return `quiet for ${span(quiet)} now`;
          const place = point.value[2];
          return `${instant(upstream.arrivals[place])}\n${count(upstream.counts[place], "event")}${place ? `, ${span(upstream.arrivals[place] - upstream.arrivals[place - 1])} after the one before` : ""}`;
        },
      },
      series: [
        { type: "scatter", data: gaps, symbolSize: 7, itemStyle: { color: color("run-fill"), opacity: 0.9 }, markLine: { silent: true, symbol: "none", animation: false, data: upstream.usual === null ? [] : [line(upstream.usual, "usually", "muted", "dashed"), line(upstream.late_after, "late after", "warn-fill", "solid")] } },
        { type: "scatter", data: quiet === null ? [] : [[millis(end), quiet / 60]], symbol: "diamond", symbolSize: 13, itemStyle: { color: color(upstream.state === "late" ? "warn-fill" : "surface"), borderColor: color(upstream.state === "late" ? "warn" : "run-fill"), borderWidth: 2 } },
        { type: "custom", xAxisIndex: 1, yAxisIndex: 1, data: upstream.arrivals.map((at, place) => [millis(at), upstream.counts[place], place]), encode: { x: 0, y: 1 }, clip: true,
          renderItem: (params, api) => { const [x, y] = api.coord([api.value(0), api.value(1)]); const [, bottom] = api.coord([api.value(0), 0]); return { type: "rect", shape: { x: x - 1.5, y, width: 3, height: Math.max(1, bottom - y) }, style: { fill: color("run-fill") } }; } },
      ],
    });
    return card("Arrivals and gaps", `each point is an arrival, as high as the time since the one before`, legend(["run", "arrival", true], ["warn", "late after"]),
      h("div", { class: "body chart" }, plot(288, `Gaps between arrivals of ${upstream.label}; the table below has the same`, options)));
  };

  // ---- The graph

  const GLYPHS = { bad: "✕ ", warn: "▲ ", run: "▶ ", good: "", idle: "", mute: "" };
  const graph = () => {
    const nodes = [
      ...D.upstreams.map((each) => ({ kind: "upstream", item: each, state: UPSTREAM_STATES[each.state], href: `#/upstream/${each.number}` })),
      ...D.jobs.map((each) => ({ kind: "job", item: each, state: JOB_STATES[each.state], href: `#/job/${each.id}` })),
    ];
    const offset = D.upstreams.length;
    const edges = D.jobs.flatMap((job) => job.deps.map(([upstream, required]) => ({ upstream, job: job.number, required })));
    const xs = nodes.map(({ item }) => item.xy[0]);
    const ys = nodes.map(({ item }) => item.xy[1]);
    const ROW = 30, NAME = 200;
    // Two invisible nodes make room for the names at the sides.
    const box = [Math.min(...xs) - NAME, Math.min(...ys), Math.max(...xs) + NAME, Math.max(...ys)];
    const corners = [[box[0], box[1]], [box[2], box[3]]].map(([x, y], at) => ({ id: `corner ${at}`, x, y, symbolSize: 0, symbol: "none", silent: true, label: { show: false }, tooltip: { show: false } }));
    let chart = null, zoom = 1, center = null, found = null, selected = null, style = "", placed = false;
    const hidden = new Set();
    // Zero would mean one to the library: nodes keep their size, and `data` chooses it.
    // The view fits the box of the nodes into the place that the margins leave.
    const MARGIN = { left: 16, right: 16, top: 40, bottom: 56 };
    const fit = () => Math.min((chart.getWidth() - MARGIN.left - MARGIN.right) / Math.max(1, box[2] - box[0]), (chart.getHeight() - MARGIN.top - MARGIN.bottom) / Math.max(1, box[3] - box[1]));
    const scale = () => fit() * zoom;
    const isShown = (node) => !hidden.has(node.state[1]);
    const data = () => {
      const pitch = ROW * scale();
      const size = Math.max(2.5, Math.min(14, pitch * (pitch < 14 ? 0.62 : 0.45)));
      const few = nodes.filter(isShown).length <= 40;
      const room = NAME * scale() - 12;
      return nodes.map((node, at) => {
        const tone = node.state[1];
        const urgent = tone === "bad" || tone === "warn";
        const isFound = !found || found.has(at) || (selected !== null && selected.has(at));
        const near = selected === null || selected.has(at);
        const grown = urgent && pitch < 16 ? Math.max(size * 1.7, 7) : size;
        return {
          id: String(at), name: node.item.label, x: node.item.xy[0], y: node.item.xy[1],
          symbol: urgent ? "diamond" : node.kind === "job" ? "roundRect" : "circle",
          symbolSize: urgent ? grown * 1.35 : grown,
          itemStyle: { color: color(`${tone}-fill`), opacity: isShown(node) && isFound && near ? 1 : 0.13, borderColor: color("surface"), borderWidth: size > 8 ? 1 : 0 },
          label: {
            show: isShown(node) && isFound && near && (pitch >= 13 || few || (found !== null && found.size <= 40) || (selected !== null && selected.size <= 60)),
            position: node.kind === "job" ? "right" : "left", distance: 6, formatter: GLYPHS[tone] + node.item.label.replace(/[{}|]/g, " ") + (tone === "mute" ? ` (${node.state[0]})` : ""), color: color(urgent ? tone : "text"),
            fontSize: 12, width: Math.max(80, room), overflow: "truncate",
          },
        };
      });
    };
    const links = () => edges.map((edge) => {
      const near = (selected === null || (selected.has(edge.upstream) && selected.has(offset + edge.job))) && isShown(nodes[edge.upstream]) && isShown(nodes[offset + edge.job]);
      const match = !found || found.has(edge.upstream) || found.has(offset + edge.job);
      return { source: edge.upstream, target: offset + edge.job, lineStyle: { type: edge.required ? "solid" : "dashed", opacity: near && match ? (selected ? 0.9 : Math.max(0.2, Math.min(0.5, scale() * 0.6))) : 0.05, color: color("muted"), width: selected && near ? 1.6 : 1 } };
    });
    const current = () => `${Math.round(scale() * 24)}`;
    const redraw = () => { style = current(); chart.setOption({ series: [{ data: [...data(), ...corners], links: links(), zoom, center }] }); };
    const options = () => ({
      ...base(),
      tooltip: { ...base().tooltip, trigger: "item", formatter: (point) => (point.dataType === "node" && nodes[point.dataIndex] ? wrapped(`${nodes[point.dataIndex].item.label}\n${nodes[point.dataIndex].state[0]}${text(nodes[point.dataIndex].item.why) ? `: ${text(nodes[point.dataIndex].item.why)}` : ""}`) : "") },
      series: [{
        type: "graph", layout: "none", roam: true, preserveAspect: true, ...MARGIN, scaleLimit: { min: 0.3, max: 80 }, nodeScaleRatio: 1e-6, edgeSymbol: ["none", "none"],
        lineStyle: { curveness: 0.08 }, emphasis: { disabled: true }, labelLayout: { hideOverlap: false }, data: [], links: [],
      }],
    });
    const ready = (made) => {
      chart = made;
      if (!placed) home();
      redraw();
      let waiting = 0;
      chart.on("graphroam", () => {
        const view = chart.getOption().series[0];
        zoom = view.zoom; center = view.center;
        clearTimeout(waiting);
        waiting = setTimeout(() => { if (current() !== style) redraw(); }, 80);
      });
      chart.on("click", (point) => point.dataType === "node" && select(point.dataIndex));
      chart.getZr().on("click", (event) => { if (!event.target) select(null); });
    };
    // The whole graph, but no larger than its names need; on a narrow screen the part at its left.
    const home = () => {
      placed = true;
      const whole = Math.min(1, 1.15 / fit());
      const isNarrow = chart.getWidth() < 640 && fit() < 0.5;
      zoom = isNarrow ? Math.min(12, 0.55 / fit()) : whole;
      center = isNarrow ? [box[0] + NAME + 75, Math.min((box[1] + box[3]) / 2, 400)] : null;
    };
    const move = (factor, by) => {
      zoom = Math.max(0.3, Math.min(80, zoom * factor));
      const middle = center || [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
      if (by) center = [middle[0] + by[0] / scale(), middle[1] + by[1] / scale()];
      redraw();
    };
    const goTo = (at) => { center = [...nodes[at].item.xy]; zoom = Math.max(zoom, 1 / fit()); };
    const side = h("aside", { class: "side", hidden: true, "aria-live": "polite" });
    const select = (at) => {
      selected = null;
      side.hidden = at === null;
      if (at !== null) {
        const node = nodes[at];
        const around = node.kind === "job" ? node.item.deps.map(([upstream]) => upstream) : node.item.jobs.map(({ job }) => offset + job.number);
        selected = new Set([at, ...around]);
        side.replaceChildren(
          h("button", { class: "close", type: "button", "aria-label": "Close", onclick: () => select(null) }, "✕"),
          badge(node.state), h("h2", {}, bdi(node.item.label)), h("p", { class: "muted" }, bdi(text(node.item.why) || text(node.item.about))),
          h("p", {}, h("a", { href: node.href }, node.kind === "job" ? "Open the job" : "Open the upstream")),
          h("h3", {}, node.kind === "job" ? "Upstreams" : "Jobs"),
          h("ul", {}, around.slice(0, 60).map((each) => h("li", {}, icon(nodes[each].state[1], nodes[each].state[1]), h("a", { href: nodes[each].href }, bdi(nodes[each].item.label)), h("span", { class: "muted" }, nodes[each].state[0])))));
      }
      if (chart) redraw();
    };
    let turn = 0;
    const search = h("input", {
      class: "filter", type: "search", placeholder: "Search the graph", "aria-label": "Search the graph",
      oninput: () => {
        const wanted = search.value.trim().toLowerCase();
        const matches = wanted ? nodes.flatMap((node, at) => (node.item.label.toLowerCase().includes(wanted) ? [at] : [])) : null;
        found = matches && new Set(matches);
        turn = 0;
        result.textContent = matches ? count(matches.length, "match", "matches") : "";
        if (matches && matches.length) goTo(matches[0]);
        redraw();
      },
      onkeydown: (event) => {
        if (event.key !== "Enter" || !found || !found.size) return;
        const at = [...found][turn++ % found.size];
        goTo(at);
        select(at);
      },
    });
    const result = h("span", { class: "muted", role: "status" });
    const tones = [["bad", "held, unreadable"], ["warn", "late, will retry"], ["run", "running"], ["good", "on time, ready"], ["idle", "waiting, no data"], ["mute", "paused"]];
    const chips = tones.map(([tone, label]) => {
      const number = nodes.filter((node) => node.state[1] === tone).length;
      const chip = h("button", { class: "chip", type: "button", "aria-pressed": "false", title: "Show these only, or all", onclick: () => {
        const only = chip.getAttribute("aria-pressed") !== "true";
        chips.forEach((each) => each && each.setAttribute("aria-pressed", String(each === chip && only)));
        hidden.clear();
        if (only) tones.forEach(([other]) => other !== tone && hidden.add(other));
        redraw();
      } }, h("i", { class: `swatch ${tone} dot` }), label, h("b", {}, number.toLocaleString("en")));
      return number ? chip : null;
    });
    const key = (event) => {
      const act = { "+": [1.4], "=": [1.4], "-": [1 / 1.4], ArrowLeft: [1, [-80, 0]], ArrowRight: [1, [80, 0]], ArrowUp: [1, [0, -80]], ArrowDown: [1, [0, 80]] }[event.key];
      if (!act) return;
      event.preventDefault();
      move(...act);
    };
    const canvas = plot(0, `${count(D.upstreams.length, "upstream")} and ${count(D.jobs.length, "job")}, and what depends on what; the lists of jobs and upstreams have the same. Keys: plus, minus and arrows.`, options, ready);
    canvas.setAttribute("tabindex", "0");
    canvas.addEventListener("keydown", key);
    const button = (label, name, act) => h("button", { class: "button", type: "button", "aria-label": name, title: name, onclick: act }, label);
    if (!nodes.length) return [h("h1", {}, "Graph"), h("section", { class: "card" }, empty("There is no job yet", "The controls CSV has no row."))];
    return [
      h("h1", {}, "Graph ", h("span", { class: "muted" }, `${count(D.upstreams.length, "upstream")} ● ${count(D.jobs.length, "job")} ■`)),
      h("section", { class: "card" },
        h("div", { class: "head" }, h("div", { class: "filters" }, chips), h("div", { class: "right" }, result, search)),
        h("div", { class: "graph" }, canvas, side,
          h("div", { class: "zoom" }, button("+", "Zoom in", () => move(1.4)), button("−", "Zoom out", () => move(1 / 1.4)), button("Fit", "Fit the whole graph", () => { center = null; zoom = Math.min(1, 1.15 / fit()); redraw(); })))),
    ];
  };

  // ---- Events

  const EVENT = ["at", "upstream", "table", "partition", "operation", "snapshot", "tags"];
  const events = () => {
    const all = D.events.map((row) => Object.fromEntries(EVENT.map((name, at) => [name, row[at]])));
    let filter = "";
    const results = h("div");
    const fill = () => {
      const rows = all.filter((row) => !filter || [row.table, row.partition, row.operation, row.snapshot, row.tags].some((each) => text(each).toLowerCase().includes(filter)));
      expanders = [];
      results.replaceChildren(...table([
        { title: "Registered", tight: true, down: true, cell: (row) => absolute(row.at), sort: (row) => row.at },
        { title: "Table", name: true, cell: (row) => (row.upstream >= 0 ? h("a", { href: `#/upstream/${row.upstream}` }, bdi(text(row.table) || D.upstreams[row.upstream].label)) : bdi(text(row.table))), sort: (row) => text(row.table) },
        { title: "Operation", tight: true, cell: (row) => text(row.operation), sort: (row) => text(row.operation) },
        { title: "Partition", cell: (row) => bdi(text(row.partition)), sort: (row) => text(row.partition) },
        { title: "Snapshot", number: true, cell: (row) => h("span", { class: "mono" }, text(row.snapshot)), sort: (row) => text(row.snapshot) },
        { title: "Tags", wide: true, cell: (row) => clamp(text(row.tags)), sort: (row) => text(row.tags) },
      ], rows, { limit: 60, label: "Events", empty: filter ? "No match." : "No event was recorded yet." }));
    };
    const input = h("input", { class: "filter", type: "search", placeholder: "Table, partition, operation, tag", "aria-label": "Filter events", oninput: () => { filter = input.value.toLowerCase(); fill(); } });
    const place = h("section", { class: "card long" }, h("div", { class: "head" }, h("h2", {}, "Newest data-change events"), h("span", { class: "sub" }, "older ones: heartbeat events"), h("div", { class: "right" }, input)), results);
    fill();
    return [h("h1", {}, "Events"), place];
  };

  // ---- Which view is shown

  const VIEWS = { "": overview, jobs, upstreams, graph, events, job: jobPage, upstream: upstreamPage };
  const OWNER = { "": "overview", job: "jobs", upstream: "upstreams" };
  const show = (isMove) => {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const slash = path.indexOf("/");
    const name = slash < 0 ? path : path.slice(0, slash);
    const rest = slash < 0 ? query : decodeURIComponent(path.slice(slash + 1));
    const view = Object.hasOwn(VIEWS, name) ? name : "";
    charts.forEach((each) => each.chart && each.chart.dispose());
    charts = [];
    expanders = [];
    resized.disconnect();
    $("main").replaceChildren(...VIEWS[view](rest, query).filter(Boolean));
    document.querySelectorAll(".views a").forEach((link) =>
      link.dataset.view === (OWNER[view] ?? view) ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current"));
    document.title = `${$("main").querySelector("h1")?.textContent || "Overview"} · Heartbeat`;
    draw();
    charts.forEach(({ element }) => resized.observe(element));
    if (isMove) { scrollTo(0, 0); $("main").focus({ preventScroll: true }); }
  };

  // ---- The frame: age, theme, time zone, finder, keys, print

  const OLD_SECONDS = 900;
  const age = () => {
    const behind = Date.now() / 1000 - D.origin - D.now;
    const since = D.ticked === null ? null : D.now - D.ticked + Math.max(0, behind);
    const isOld = since === null || since > OLD_SECONDS;
    $("age").classList.toggle("old", isOld);
    $("age").textContent = since === null ? `No tick has come to its end yet. The page was written at ${instant(D.now)}.`
      : `${isOld ? `No tick for ${span(since)}: this is how things stood then. ` : ""}Last tick ${instant(D.ticked)}${isOld ? "" : `, ${span(since)} ago`}. The page was written at ${instant(D.now)} and covers ${span(D.now)}.${D.at_work ? ` \`${D.at_work}\` is at work.` : ""}`;
  };
  const dress = () => {
    root.dataset.theme = isDark() ? "dark" : "light";
    $("theme").textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
    $("theme").setAttribute("aria-label", `Colours: ${theme}`);
    $("zone").textContent = isUtc ? "UTC" : "Local";
    $("zone").setAttribute("aria-label", `Instants: ${isUtc ? "UTC" : "local time"}`);
  };
  $("theme").addEventListener("click", () => { theme = { auto: "light", light: "dark", dark: "auto" }[theme]; kept("theme", theme); dress(); draw(); });
  $("zone").addEventListener("click", () => { isUtc = !isUtc; kept("zone", isUtc ? "utc" : "local"); dress(); age(); show(false); });
  system.addEventListener("change", () => { dress(); draw(); });

  const MOST_FOUND = 12;
  const finder = $("find"), list = $("found");
  let choices = [], chosen = 0;
  const rank = (label, wanted) => { const at = label.toLowerCase().indexOf(wanted); return at < 0 ? Infinity : at; };
  const find = () => {
    const wanted = finder.value.trim().toLowerCase();
    const scored = wanted ? [
      ...D.jobs.map((job) => ({ item: job, kind: "job", state: JOB_STATES[job.state], href: `#/job/${job.id}`, score: Math.min(rank(job.label, wanted), rank(job.id, wanted)) })),
      ...D.upstreams.map((each) => ({ item: each, kind: "upstream", state: UPSTREAM_STATES[each.state], href: `#/upstream/${each.number}`, score: rank(each.label, wanted) })),
    ].filter(({ score }) => score < Infinity) : [];
    choices = scored.sort((a, b) => a.score - b.score || a.item.label.localeCompare(b.item.label)).slice(0, MOST_FOUND);
    chosen = 0;
    offer(wanted);
  };
  const offer = (wanted) => {
    list.hidden = !wanted;
    finder.setAttribute("aria-expanded", String(Boolean(wanted)));
    list.replaceChildren(...choices.map((each, at) => h("li", { id: `found-${at}`, role: "option", "aria-selected": String(at === chosen), onmousedown: (event) => { event.preventDefault(); open(at); } },
      icon(each.kind, "mute"), h("span", {}, bdi(each.item.label)), badge(each.state))));
    if (wanted && !choices.length) list.replaceChildren(h("li", { role: "option", "aria-selected": "false" }, h("span"), h("span", {}, "No match")));
    if (choices.length) finder.setAttribute("aria-activedescendant", `found-${chosen}`);
    else finder.removeAttribute("aria-activedescendant");
  };
  const close = () => { finder.value = ""; choices = []; offer(""); };
  const open = (at) => { const to = choices[at]?.href; close(); finder.blur(); if (to) location.hash = to; };
  finder.addEventListener("input", find);
  finder.addEventListener("blur", () => offer(""));
  finder.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); open(chosen); }
    if (event.key === "Escape") { close(); finder.blur(); }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && choices.length) { event.preventDefault(); chosen = (chosen + by + choices.length) % choices.length; offer(finder.value); }
  });
  finder.form.addEventListener("submit", (event) => event.preventDefault());

  const KEYS = { o: "#/", j: "#/jobs", u: "#/upstreams", g: "#/graph", e: "#/events" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "/") { event.preventDefault(); finder.focus(); }
    else if (Object.hasOwn(KEYS, event.key)) location.hash = KEYS[event.key];
  });
  addEventListener("beforeprint", () => { expanders.forEach((each) => each()); root.dataset.theme = "light"; draw(); charts.forEach((each) => each.chart && each.chart.getZr().flush()); });
  addEventListener("afterprint", () => { dress(); draw(); });
  addEventListener("hashchange", () => show(true));

  $("foot").append(`Heartbeat ${D.version}. Keys: / finds, o overview, j jobs, u upstreams, g graph, e events. Everything here is from the ledgers; \`heartbeat explain JOB\` has more.`);
  dress();
  age();
  setInterval(age, 15000);
  show(false);
})();
