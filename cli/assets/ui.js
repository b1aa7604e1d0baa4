// The local page of `goodput ui`: runs of a folder, their comparison, training as it goes, and a daemon's cluster.
"use strict";
(() => {
  const { root, element, dot, number, duration, sortable, chart } = goodput;
  const by = id => document.getElementById(id);
  const get = async path => {
    const answer = await fetch(path);
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error ?? answer.statusText);
    return body;
  };
  const table = (heads, rows) => {
    const made = element("table", { className: "sortable" },
      element("thead", {}, element("tr", {}, ...heads.map(([name, text]) => element("th", { className: text ? "text" : "" }, name)))),
      element("tbody", {}, ...rows.map(cells => element("tr", {}, ...cells.map(([content, value], at) =>
        element("td", { className: heads[at][1] ? "text" : "", ...(value === undefined ? {} : { "data-value": value }) }, content ?? "–"))))));
    sortable(made);
    return made;
  };
  // A table that is drawn anew keeps the order that its reader chose.
  const put = (host, made) => {
    const heads = () => [...(host.querySelector("thead tr")?.cells ?? [])];
    const chosen = heads().find(head => head.getAttribute("aria-sort") !== "none");
    const clicks = !chosen ? 0 : chosen.getAttribute("aria-sort") === "ascending" ? 1 : 2;
    host.replaceChildren(made);
    for (let click = 0; click < clicks; click++) heads().find(head => head.textContent === chosen.textContent)?.click();
  };
  // A choice in `host` stays while the rest is drawn anew, so that it keeps the focus of the keyboard.
  const select = (host, label, options, chosen, choose) => {
    let list = host.querySelector("select");
    if (!list) {
      list = element("select");
      list.addEventListener("change", () => list.choose(list.value));
      host.append(element("label", {}, label, list));
    }
    list.choose = choose;
    if (options.join("\n") !== [...list.options].map(option => option.value).join("\n")) {
      list.replaceChildren(...options.map(name => element("option", { value: name }, name)));
    }
    list.value = chosen;
  };

  const ticked = new Map();
  let metric = "jct_mean_secs";
  const compare = () => {
    by("compare").hidden = ticked.size === 0;
    const rows = [...ticked].flatMap(([run, summary]) => summary.policies.map((policy, at) => ({ run, summary, policy, at })));
    const keys = [...new Set(rows.flatMap(({ policy }) => Object.keys(policy.metrics)))].sort();
    if (!keys.length) return;
    if (!keys.includes(metric)) metric = keys[0];
    select(by("compare").querySelector(".controls"), "metric", keys, metric, key => { metric = key; compare(); });
    const workloads = summary => summary.workloads.map(({ name, seeds }) => `${name}, ${seeds.length} seeds`).join("; ");
    put(by("grid"), table(
      [["run", 1], ["policy", 1], [metric], ["low"], ["high"], ["information", 1], ["workloads", 1]],
      rows.map(({ run, summary, policy, at }) => {
        const { value, ci } = policy.metrics[metric] ?? {};
        const name = element("span", { className: "name" }, dot(`--s${at % 8}`), policy.name);
        return [[run], [name], [number(value), value ?? "–"], [number(ci?.low), ci?.low ?? "–"],
          [number(ci?.high), ci?.high ?? "–"], [policy.information], [workloads(summary)]];
      })));
  };

  let stream = null, figure = "eval/jct_mean_secs";
  const follow = run => {
    stream?.close();
    by("training").hidden = false;
    by("following").textContent = `Figures of ${run}, as they are written.`;
    let heads = [], columns = [];
    const draw = () => {
      if (!columns.length) return;
      const names = heads.slice(1).filter((_, at) => columns[at + 1].some(value => value != null));
      if (!names.includes(figure)) figure = names[0];
      select(by("training").querySelector(".controls"), "figure", names, figure, name => { figure = name; draw(); });
      chart(by("curve"), { x: columns[0], xName: heads[0], yName: figure, xText: value => String(value), yText: number,
        lines: [{ name: figure, color: "--s0", values: columns[heads.indexOf(figure)] }] });
      root.dataset.rows = columns[0].length;
    };
    stream = new EventSource(`/api/progress?run=${encodeURIComponent(run)}`);
    stream.addEventListener("head", event => { heads = event.data.split(","); columns = heads.map(() => []); });
    stream.addEventListener("rows", event => {
      for (const line of event.data.split("\n")) {
        line.split(",").forEach((text, at) => columns[at]?.push(text === "" ? null : Number(text)));
      }
      draw();
    });
  };

  const ago = secs => `${duration(secs).replace(/\.\d+/, "")} ago`;
  let listed = "";
  const list = async () => {
    const { folder, runs } = await get("/api/runs");
    by("folder").textContent = `Folder ${folder}`;
    by("empty").hidden = runs.length > 0;
    by("empty").textContent = "There is no run yet: goodput train and goodput eval write them here.";
    if (!runs.length) return;
    // Where nothing but time has passed, the table stays with the focus of its reader.
    const facts = JSON.stringify(runs.map(run => ({ ...run, age_secs: 0 })));
    if (facts === listed) {
      for (const age of by("list").querySelectorAll("[data-age]")) {
        const secs = runs.find(run => run.name === age.dataset.age)?.age_secs;
        age.textContent = ago(secs);
        age.closest("td").dataset.value = secs;
      }
      return;
    }
    listed = facts;
    const row = run => {
      const tick = element("input", { type: "checkbox", checked: ticked.has(run.name), disabled: !run.summary });
      tick.addEventListener("change", async () => {
        if (tick.checked) ticked.set(run.name, await get(`/api/summary?run=${encodeURIComponent(run.name)}`));
        else ticked.delete(run.name);
        compare();
      });
      const report = run.report ? element("a", { href: `/report?run=${encodeURIComponent(run.name)}` }, "report") : "";
      const watch = run.progress ? element("button", { type: "button" }, "training") : "";
      if (watch) watch.addEventListener("click", () => follow(run.name));
      const age = element("span", { "data-age": run.name }, ago(run.age_secs));
      return [[tick, run.summary ? 1 : 0], [run.name], [element("span", { className: "controls" }, report, watch)],
        [run.best ?? "–"], [number(run.jct_secs), run.jct_secs ?? "–"], [run.state], [age, run.age_secs]];
    };
    put(by("list"), table(
      [["compare", 1], ["run", 1], ["open", 1], ["best policy", 1], ["mean JCT, s"], ["state", 1], ["changed"]], runs.map(row)));
    root.dataset.runs = runs.length;
    const running = runs.find(run => run.state === "running" && run.progress);
    if (running && !stream) follow(running.name);
  };

  // Cells about the forecast of a service, and how often the load rose above the high one.
  const ahead = forecast => !forecast ? [["–"], ["–"], ["–"], ["–"]] : [
    [number(forecast.usual), forecast.usual], [number(forecast.high), forecast.high],
    [`${forecast.above_high} of ${forecast.windows}`, forecast.above_high],
    [new Date(forecast.until_ms).toLocaleTimeString(), forecast.until_ms]];

  const daemon = async () => {
    const { status, nodes, services, queue } = await get("/api/daemon");
    by("cluster").hidden = false;
    const leads = status.term == null ? "stands by" : `leads, term ${status.term}`;
    by("daemon").textContent = `${status.engine} ${status.engine_release} · ${status.mode} · ${leads} · policy ` +
      `${status.undecided ? `${status.policy}, NOTHING IS DECIDED: ${status.undecided}` : status.fallback ? `FALLBACK ${status.fallback}` : status.policy} · ${status.decisions} decisions`;
    by("machines").replaceChildren(...nodes.map(node => element("div", { title: node.note },
      element("b", {}, node.name), ` ${node.accelerator} `,
      element("span", { className: "held" }, "■".repeat(node.gpus - Math.min(node.free, node.gpus))),
      element("span", { className: "free" }, "■".repeat(node.free)),
      ...(node.health === "up" ? [] : [element("div", { className: "bad" }, `${node.health}: ${node.note}`)]))));
    const places = job => job.placement.map(on => `${on.node}:${on.gpus}`).join(" ");
    // Jobs have no tenant where the deployment declares none.
    const tenants = queue.some(job => job.tenant);
    put(by("queue"), queue.length ? table(
      [["job", 1], ...(tenants ? [["tenant", 1]] : []), ["phase", 1], ["accelerators"], ["on", 1], ["age"], ["reason", 1]],
      queue.map(job => [[job.name || job.key], ...(tenants ? [[job.tenant]] : []), [job.phase], [job.gpus[1]], [places(job)],
        [duration(job.age_secs), job.age_secs], [job.detail || job.reason]])) : "The queue is empty.");
    const ready = service => service.replicas.filter(replica => replica.phase === "ready").length;
    const rate = value => value == null ? "unknown" : number(value);
    by("services").hidden = !services.length;
    const forecast = services.some(service => service.forecast);
    by("ahead").hidden = !forecast;
    put(by("served"), table(
      [["service", 1], ["replicas ready"], ["load, 1/s"],
        ...(forecast ? [["usual, 1/s"], ["high, 1/s"], ["above high"], ["forecast until", 1]] : [])],
      services.map(service => [[service.name], [`${ready(service)} of ${service.replicas.length}`, ready(service)],
        [rate(service.rate), service.rate ?? "–"], ...(forecast ? ahead(service.forecast) : [])])));
    by("alerts").hidden = !status.alerts.length;
    by("alerts").textContent = status.alerts.slice(-3).join(" · ");
    root.dataset.nodes = nodes.length;
  };

  const again = (work, millis) => {
    const turn = () => work().catch(error => { by("empty").hidden = false; by("empty").textContent = error.message; })
      .finally(() => setTimeout(turn, millis));
    turn();
  };
  root.classList.add("interactive");
  again(list, 5000);
  if ($DAEMON) again(daemon, 2000);
})();
