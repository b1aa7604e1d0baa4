// The report of a comparison: choices of policies, metric, workload and seed, and the charts that follow them.
"use strict";
(() => {
  const { root, element, dot, number, timeUnit, duration, sortable, chart } = goodput;
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = id => document.getElementById(id);
  const state = { hidden: new Set(), metric: 0, workload: -1, seed: "", nodes: 0 };
  const shown = () => data.policies.map((_, at) => at).filter(at => !state.hidden.has(at));
  const scenarios = () => data.scenarios.map((_, at) => at).filter(at => {
    const [workload, seed] = data.scenarios[at];
    return (state.workload < 0 || workload === state.workload) && (state.seed === "" || String(seed) === state.seed);
  });
  const ofRun = ([workload, seed]) => data.workloads.length > 1 ? `workload ${data.workloads[workload]}, seed ${seed}` : `seed ${seed}`;
  const mean = values => values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  const followers = [];
  const changed = () => followers.forEach(follow => follow());

  const select = (label, options, choose) => {
    const list = element("select", {}, ...options.map(([value, text]) => element("option", { value }, text)));
    list.addEventListener("change", () => { choose(list.value); changed(); });
    return element("label", {}, label, list);
  };

  // A live part before the static figure of a section, which is then for paper.
  const inFigure = (id, caption) => {
    const figure = by(id)?.querySelector("figure");
    if (!figure) return null;
    const host = element("div", { className: "live" });
    figure.classList.add("replaced");
    figure.prepend(host, element("p", { className: "live note" }, `${caption} Drag to zoom, double-click to see all.`));
    return host;
  };

  const explore = () => {
    const seeds = [...new Set(data.scenarios.map(([, seed]) => seed))];
    const controls = element("div", { className: "controls" },
      select("metric", data.metrics.map((metric, at) => [at, metric.name]), at => { state.metric = +at; }));
    if (data.workloads.length > 1) {
      const all = [[-1, "all"], ...data.workloads.map((name, at) => [at, name])];
      controls.append(select("workload", all, at => { state.workload = +at; }));
    }
    if (seeds.length > 1) {
      controls.append(select("seed", [["", "all"], ...seeds.map(seed => [seed, seed])], seed => { state.seed = seed; }));
    }
    const chips = element("div", { className: "chips" }, ...data.policies.map((policy, at) => {
      const chip = element("button", { type: "button", "aria-pressed": "true" }, dot(policy.color), policy.name);
      chip.addEventListener("click", () => {
        if (!state.hidden.delete(at)) state.hidden.add(at);
        chip.setAttribute("aria-pressed", String(!state.hidden.has(at)));
        changed();
      });
      return chip;
    }));
    const plot = element("div"), about = element("p", { className: "note" }), grid = element("div", { className: "wide bleed" });
    by("explore").append(element("h2", {}, "Any metric, any run"), controls, chips, plot, about, grid);

    followers.push(() => {
      const metric = data.metrics[state.metric], values = data.values[state.metric], runs = scenarios();
      const name = at => {
        const [workload, seed] = data.scenarios[runs[at]] ?? [];
        return workload == null ? "" : data.workloads.length > 1 && state.workload < 0 ? `${data.workloads[workload]}/${seed}` : `${seed}`;
      };
      const unit = metric.unit ? `, ${metric.unit}` : "";
      chart(plot, {
        // An empty place at either end keeps points off the frame.
        x: [-0.5, ...runs.map((_, at) => at), runs.length - 0.5], xName: "seed", yName: metric.name + unit, height: 300,
        xText: at => Number.isInteger(at) ? name(at) : "", yText: number,
        splits: runs.length < 12 ? () => runs.map((_, at) => at) : undefined,
        lines: shown().map(policy => ({ name: data.policies[policy].name, color: data.policies[policy].color, points: true,
          values: [null, ...runs.map(run => values[policy][run] == null ? null : values[policy][run] / metric.per), null] })),
      });
      about.textContent = `${metric.about}; ${metric.higher ? "larger" : "smaller"} is better. A point is a run. ` +
        "Drag to zoom, double-click to see all.";
      const rows = shown().map(policy => {
        const own = runs.map(run => values[policy][run]).filter(value => value != null).map(value => value / metric.per);
        const pairs = runs.map(run => [values[policy][run], values[data.reference][run]]).filter(pair => pair.every(value => value != null));
        const base = mean(pairs.map(pair => pair[1])), change = base ? (mean(pairs.map(pair => pair[0])) / base - 1) * 100 : null;
        return [policy, mean(own), own.length ? Math.min(...own) : null, own.length ? Math.max(...own) : null, change, own.length];
      });
      const heads = ["policy", `mean${unit}`, "smallest", "largest", `vs ${data.policies[data.reference].name}, %`, "runs"];
      const cell = (value, text) => element("td", { "data-value": value ?? "–" }, text);
      const table = element("table", { className: "sortable" },
        element("thead", {}, element("tr", {}, ...heads.map(head => element("th", {}, head)))),
        element("tbody", {}, ...rows.map(([policy, ...numbers]) => element("tr", {},
          element("td", {}, element("span", { className: "name" }, dot(data.policies[policy].color), data.policies[policy].name)),
          ...numbers.map((value, at) => cell(value, at === 4 ? String(value) : at < 3 ? number(value)
            : policy === data.reference ? "reference" : `${value > 0 ? "+" : ""}${number(value)}`))))));
      sortable(table);
      grid.replaceChildren(table);
    });
  };

  const completion = () => {
    const host = data.completion.length ? inFigure("completion", "Share of the jobs of the chosen runs that are complete within a " +
      "time of their submission. A curve further left is better.") : null;
    if (!host) return;
    // Share of completed jobs within `secs`, from the quantiles of a run.
    const share = ({ secs: quantiles }, secs) => {
      if (secs < quantiles[0]) return 0;
      let low = 0, high = quantiles.length - 1;
      if (secs >= quantiles[high]) return 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (quantiles[middle] <= secs) low = middle; else high = middle;
      }
      return (low + (secs - quantiles[low]) / Math.max(quantiles[high] - quantiles[low], 1e-9)) / (quantiles.length - 1);
    };
    followers.push(() => {
      const of = policy => scenarios().map(run => data.completion[policy][run]).filter(run => run.jobs > 0);
      const runs = shown().map(of), all = runs.flat();
      if (!all.length) return;
      const low = Math.max(1, Math.min(...all.map(run => run.secs[0])));
      const high = Math.max(...all.map(run => run.secs[run.secs.length - 1]), low * 2);
      const x = Array.from({ length: 300 }, (_, at) => low * (high / low) ** (at / 299));
      const curve = own => {
        const jobs = own.reduce((sum, run) => sum + run.jobs, 0);
        return x.map(secs => jobs ? own.reduce((sum, run) => sum + run.jobs * share(run, secs), 0) / jobs * 100 : null);
      };
      chart(host, {
        x, xName: "time from submission to completion", yName: "jobs complete, %", xText: duration, yText: number, xLog: true,
        splits: goodput.roundTimes,
        lines: shown().map((policy, at) => ({ ...data.policies[policy], values: curve(runs[at]) })), yFromZero: true,
      });
    });
  };

  const held = () => {
    const host = data.held ? inFigure("utilisation", `Share of accelerators that jobs hold, of ` +
      `${ofRun(data.scenarios[0])}. Holding is not progress: compare goodput in the table.`) : null;
    if (!host) return;
    const { until_secs: until, shares } = data.held, [unit, size] = timeUnit(until);
    const x = shares[0].map((_, at) => until / size * at / shares[0].length);
    followers.push(() => chart(host, {
      x, xName: `${unit} since the start of the run`, yName: "accelerators held, %", xText: number, yText: number, yFromZero: true,
      lines: shown().map(policy => ({ ...data.policies[policy], step: true, values: shares[policy].map(value => value / 10) })),
    }));
  };

  const nodes = () => {
    const with_chart = data.policies.map((_, at) => at).filter(at => data.nodes[at]);
    if (!with_chart.length) {
      by("nodes").remove();
      document.querySelectorAll(".still").forEach(note => note.classList.remove("still"));
      return;
    }
    const focus = with_chart.find(at => data.policies[at].focus) ?? with_chart.find(at => at !== data.reference) ?? with_chart[0];
    const list = element("select", {}, ...with_chart.map(at => element("option", { value: at }, data.policies[at].name)));
    list.value = focus;
    const host = element("div", { className: "nodes" }), keys = element("p", { className: "keys" });
    const note = element("p", { className: "note" });
    const show = () => {
      const one = data.nodes[list.value], names = one.applications;
      keys.replaceChildren(...(names.length < 2 ? [] : names.slice(0, 8).map((name, at) => element("span", {}, dot(`--s${at}`), name))));
      const cut = one.bars < one.all_bars ? ` The page holds the first ${one.bars} of ${one.all_bars} stays.` : "";
      const left = data.crowded_out.length ? ` It has no room for ${data.crowded_out.join(", ")}.` : "";
      note.textContent = `${one.bars} stays of ${one.jobs} jobs on ${one.nodes} nodes, of ${ofRun(data.scenarios[0])}. A row ` +
        `is a node and a bar is as high as the job has accelerators there.${cut}${left} Drag to zoom, double-click to see all.`;
      return goodput.nodes.show(host, one);
    };
    list.addEventListener("change", show);
    by("nodes").append(element("h2", {}, "Jobs on the nodes"),
      element("div", { className: "controls" }, element("label", {}, "policy", list)), host, keys, note);
    return show();
  };

  root.classList.add("interactive");
  document.querySelectorAll("table.sortable").forEach(sortable);
  explore();
  completion();
  held();
  changed();
  Promise.resolve(nodes()).then(() => { root.dataset.ready = "true"; });
})();
