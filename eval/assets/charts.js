// What the pages of goodput share: elements, sorted tables, and charts by uPlot in the colours of the page.
"use strict";
const goodput = (() => {
  const root = document.documentElement;
  const color = name => getComputedStyle(root).getPropertyValue(name).trim();

  // A page whose script fails shows its static figures and says why.
  const fail = what => {
    root.classList.remove("interactive");
    root.dataset.error = String(what);
    console.error(what);
  };
  addEventListener("error", event => fail(event.message));
  addEventListener("unhandledrejection", event => fail(event.reason));

  const element = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key in made) made[key] = value; else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };

  const dot = variable => {
    const made = element("span", { className: "dot" });
    made.style.setProperty("--c", `var(${variable})`);
    return made;
  };

  // Three significant digits.
  const number = value => {
    if (value == null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 || size === 0 ? 2 : 3;
    return value.toFixed(digits).replace("-", "−");
  };

  // The largest unit of time that an axis up to `secs` reads well in: its name and its size.
  const timeUnit = secs =>
    secs > 518400 ? ["days", 86400] : secs > 7200 ? ["hours", 3600] : secs > 120 ? ["minutes", 60] : ["seconds", 1];

  const duration = secs => {
    const [name, size] = secs > 172800 ? ["d", 86400] : secs > 7200 ? ["h", 3600] : secs > 120 ? ["min", 60] : ["s", 1];
    return `${number(secs / size)} ${name}`;
  };

  // Round spans of time between two, for the ticks of a logarithmic axis.
  const roundTimes = (_, __, low, high) => {
    const inside = times => times.filter(secs => secs >= low && secs <= high);
    const coarse = inside([1, 10, 60, 600, 3600, 36000, 345600, 3456000]);
    const fine = inside([1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 108000, 345600, 1036800, 3456000]);
    return coarse.length > 3 ? coarse : fine.length > 1 ? fine
      : Array.from({ length: 5 }, (_, at) => low + (high - low) * at / 4);
  };

  // The text of a tick, without the zeros that say how exact a value is.
  const plain = text => text.replace(/^(−?\d+)\.(\d*?)0*(?= |$)/, (_, whole, part) => part ? `${whole}.${part}` : whole);

  // Places for ticks of which no two are closer than a label is wide.
  const apart = (places, low, high, width, log) => {
    const at = place => (log ? Math.log(place / low) / Math.log(high / low) : (place - low) / (high - low)) * width;
    const kept = [];
    for (const place of places) {
      if (!kept.length || at(place) - at(kept[kept.length - 1]) >= 64) kept.push(place);
    }
    return kept;
  };

  // Rows go by the number that a cell begins with, and by its text where there is none; no value comes last. Each
  // body of the table is sorted by itself.
  const sortable = table => {
    const heads = [...table.tHead.rows[0].cells];
    const key = (row, at) => {
      const cell = row.cells[at];
      const text = (cell.dataset.value ?? cell.firstChild?.textContent ?? "").trim().replace("−", "-").replace(/,/g, "");
      const value = parseFloat(text);
      return Number.isNaN(value) ? text : value;
    };
    const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
      : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? -1 : 1;
    heads.forEach((head, at) => {
      head.setAttribute("aria-sort", "none");
      head.tabIndex = 0;
      const sort = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(other => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const empty = value => value === "" || value === "–";
        for (const body of table.tBodies) {
          const rows = [...body.rows].map(row => [key(row, at), row]);
          rows.sort(([a], [b]) => empty(a) - empty(b) || (down ? order(b, a) : order(a, b)));
          body.append(...rows.map(([, row]) => row));
        }
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
    });
  };

  const charts = new Set();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(chart => chart.redraw(false)));

  // A chart in `host`: `x` values, and lines of { name, color, values, points, step }. Text of values and of ticks comes
  // from `xText` and `yText`. Dragging zooms, a double click shows all again, and the legend has the values under the
  // pointer.
  const chart = (host, { x, lines, xName, yName, xText, yText, xLog = false, yFromZero = false, height = 320, splits }) => {
    host.chart?.destroy();
    charts.delete(host.chart);
    const font = "12px system-ui, sans-serif";
    const axis = (label, text) => ({
      label, labelFont: font, font, labelSize: 22, stroke: () => color("--muted"),
      grid: { stroke: () => color("--grid"), width: 1 }, ticks: { show: false },
      values: (_, ticks) => ticks.map(tick => tick == null ? "" : plain(text(tick))),
    });
    const series = ({ name, color: variable, points, step }) => ({
      label: name, stroke: () => color(variable), width: points ? 1 : 2, spanGaps: true,
      paths: points ? () => null : step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: points ? { show: true, size: 7, fill: () => color(variable) } : { show: false },
      value: (_, value) => value == null ? "–" : yText(value),
    });
    const options = {
      width: Math.max(host.clientWidth, 260), height,
      scales: {
        x: { time: false, distr: xLog ? 3 : 1 },
        y: yFromZero ? { range: (_, low, high) => [Math.min(0, low), Math.max(high * 1.04, low + 1e-9)] } : {},
      },
      axes: [{
        ...axis(xName, xText), size: 26, space: 70, filter: splits && ((_, found) => found),
        splits: splits && ((plot, at, low, high) => apart(splits(plot, at, low, high), low, high, plot.width - 100, xLog)),
      }, { ...axis(yName, yText), size: 62 }],
      series: [{ label: xName, value: (_, value) => value == null ? "–" : xText(value) }, ...lines.map(series)],
      cursor: { drag: { x: true, y: false }, focus: { prox: 24 } },
      // Colours of the page's style, so that the legend follows its theme.
      legend: { live: true, markers: Object.fromEntries(["stroke", "fill"].map(part =>
        [part, (_, at) => `var(${lines[at - 1].color})`])) },
    };
    host.chart = new uPlot(options, [x, ...lines.map(line => line.values)], host);
    charts.add(host.chart);
    host.watch ??= new ResizeObserver(() => {
      if (host.clientWidth > 0) host.chart.setSize({ width: Math.max(host.clientWidth, 260), height });
    });
    host.watch.observe(host);
    return host.chart;
  };

  return { root, color, element, dot, number, timeUnit, duration, roundTimes, sortable, chart, fail };
})();
