// Jobs on the nodes of a cluster over time, on a canvas: a row a node, a bar a stay of a job.
"use strict";
goodput.nodes = (() => {
  const { color, element, duration, timeUnit, number, root } = goodput;
  const LEFT = 46, BOTTOM = 42, TOP = 4;

  // The columns of `eval/src/report/node_chart.rs`.
  const unpack = async chart => {
    const packed = Uint8Array.from(atob(chart.packed), letter => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let at = 0;
    const next = () => {
      let value = 0, size = 1;
      for (;;) {
        const byte = bytes[at++];
        value += (byte & 0x7f) * size;
        if (byte < 0x80) return value;
        size *= 128;
      }
    };
    const column = length => Uint32Array.from({ length }, next);
    let sum = 0;
    const signed = length => {
      sum = 0;
      return Uint32Array.from({ length }, () => {
        const step = next();
        return sum += step & 1 ? -(step + 1) / 2 : step / 2;
      });
    };
    const capacity = column(chart.nodes), colors = column(chart.jobs), written = {
      job: signed(chart.bars), from: signed(chart.bars),
      ticks: column(chart.bars), node: column(chart.bars), gpus: column(chart.bars),
    };
    // They are written job by job, and drawn in order of time.
    const order = Uint32Array.from({ length: chart.bars }, (_, bar) => bar).sort((a, b) => written.from[a] - written.from[b]);
    const ordered = values => Uint32Array.from(order, bar => values[bar]);
    const [from, ticks, node, job, gpus] = ["from", "ticks", "node", "job", "gpus"].map(name => ordered(written[name]));
    let longest = 0, end = 0;
    for (let bar = 0; bar < chart.bars; bar++) {
      longest = Math.max(longest, ticks[bar]);
      end = Math.max(end, from[bar] + ticks[bar]);
    }
    return { capacity, colors, from, ticks, node, job, gpus, slot: slots(capacity, from, ticks, node, gpus), longest, end };
  };

  // The first accelerator of each bar on its node: the lowest place that is free for as many as it has.
  const slots = (capacity, from, ticks, node, gpus) => {
    const busy = [...capacity].map(count => new Float64Array(Math.max(count, 1)));
    return Uint16Array.from(from, (begin, bar) => {
      const places = busy[node[bar]], wanted = Math.min(gpus[bar], places.length);
      let first = 0;
      for (let place = 0, run = 0; place < places.length; place++) {
        run = places[place] <= begin ? run + 1 : 0;
        if (run === wanted) { first = place - wanted + 1; break; }
      }
      places.fill(begin + ticks[bar], first, first + wanted);
      return first;
    });
  };

  // The index of the first value in ascending `values` that is at least `wanted`.
  const lowerBound = (values, wanted) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  };

  const show = async (host, chart) => {
    const bars = await unpack(chart);
    const canvas = element("canvas"), tip = element("div", { className: "tip", hidden: true });
    const band = element("div", { className: "band", hidden: true });
    host.replaceChildren(canvas, band, tip);
    const height = Math.min(Math.max(chart.nodes * 16, 150), 620) + BOTTOM + TOP;
    const all = { t0: 0, t1: Math.max(bars.end, 1), n0: 0, n1: chart.nodes };
    let view = { ...all }, width = 0;
    const byJob = chart.applications.length < 2;
    const ink = bar => (byJob ? bars.job[bar] : bars.colors[bars.job[bar]]) % 8;
    const x = tick => LEFT + (tick - view.t0) / (view.t1 - view.t0) * (width - LEFT);
    const y = row => TOP + (row - view.n0) / (view.n1 - view.n0) * (height - BOTTOM - TOP);
    const tickAt = px => view.t0 + (px - LEFT) / (width - LEFT) * (view.t1 - view.t0);
    const rowAt = px => view.n0 + (px - TOP) / (height - BOTTOM - TOP) * (view.n1 - view.n0);
    const secs = tick => tick * chart.tick_ms / 1000;

    const frame = context => {
      context.fillStyle = color("--muted");
      context.strokeStyle = color("--grid");
      context.font = "12px system-ui, sans-serif";
      const [unit, size] = timeUnit(secs(view.t1 - view.t0));
      const rough = secs(view.t1 - view.t0) / size / Math.max(width / 110, 2);
      const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(n => n * power >= rough) * power;
      context.textAlign = "center";
      for (let k = Math.ceil(secs(view.t0) / size / step); k * step * size <= secs(view.t1); k++) {
        const px = x(k * step * size * 1000 / chart.tick_ms);
        context.strokeRect(px, TOP, 0, height - BOTTOM - TOP);
        context.fillText(String(+(k * step).toPrecision(6)), px, height - BOTTOM + 15);
      }
      context.fillText(`${unit} since the start of the run`, (LEFT + width) / 2, height - 4);
      context.textAlign = "right";
      const every = Math.max(1, Math.ceil((view.n1 - view.n0) / ((height - BOTTOM) / 18)));
      for (let row = Math.ceil(view.n0 / every) * every; row < view.n1; row += every) {
        if (y(row + 0.5) > TOP && y(row + 0.5) < height - BOTTOM) context.fillText(`n${row}`, LEFT - 6, y(row + 0.5) + 4);
      }
    };

    const draw = () => {
      width = Math.max(host.clientWidth, 200);
      const scale = devicePixelRatio || 1;
      canvas.width = width * scale;
      canvas.height = height * scale;
      canvas.style.height = `${height}px`;
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      frame(context);
      context.save();
      context.beginPath();
      context.rect(LEFT, TOP, width - LEFT, height - BOTTOM - TOP);
      context.clip();
      const row = y(1) - y(0), gap = row > 8 ? 1 : 0, visible = [[], [], [], [], [], [], [], []];
      const last = lowerBound(bars.from, view.t1);
      for (let bar = lowerBound(bars.from, view.t0 - bars.longest); bar < last; bar++) {
        const inside = bars.from[bar] + bars.ticks[bar] >= view.t0 && bars.node[bar] + 1 > view.n0 && bars.node[bar] < view.n1;
        if (inside) visible[ink(bar)].push(bar);
      }
      let drawn = 0;
      visible.forEach((group, index) => {
        context.fillStyle = color(`--s${index}`);
        for (const bar of group) {
          const node = bars.node[bar], share = (row - gap) / Math.max(bars.capacity[node], 1);
          const left = x(bars.from[bar]), right = x(bars.from[bar] + bars.ticks[bar]);
          const space = right - left > 4 ? 0.6 : 0;
          context.fillRect(left, y(node) + bars.slot[bar] * share, Math.max(right - left - space, 0.4),
            Math.max(Math.min(bars.gpus[bar], bars.capacity[node]) * share, 0.4));
        }
        drawn += group.length;
      });
      context.restore();
      canvas.dataset.bars = drawn;
    };

    const hit = (px, py) => {
      const tick = tickAt(px), row = rowAt(py), node = Math.floor(row), place = (row - node) * bars.capacity[node];
      for (let bar = lowerBound(bars.from, tick) - 1; bar >= 0 && bars.from[bar] + bars.longest >= tick; bar--) {
        const here = bars.node[bar] === node && bars.from[bar] + bars.ticks[bar] >= tick;
        if (here && place >= bars.slot[bar] && place < bars.slot[bar] + bars.gpus[bar]) return bar;
      }
      return -1;
    };
    const say = (bar, px, py) => {
      tip.hidden = bar < 0;
      if (bar < 0) return;
      const application = chart.applications[bars.colors[bars.job[bar]]];
      const begin = secs(bars.from[bar]), length = secs(bars.ticks[bar]);
      tip.replaceChildren(
        `job ${bars.job[bar]}${application ? `, ${application}` : ""}`, element("br"),
        `${bars.gpus[bar]} of ${bars.capacity[bars.node[bar]]} accelerators of n${bars.node[bar]}`, element("br"),
        `from ${duration(begin)} to ${duration(begin + length)}: ${duration(length)}`);
      tip.style.left = `${Math.min(px + 12, width - tip.offsetWidth)}px`;
      tip.style.top = `${py + 14}px`;
    };

    let pressed = null;
    const clamp = event => [Math.min(Math.max(event.offsetX, LEFT), width), Math.min(Math.max(event.offsetY, TOP), height - BOTTOM)];
    canvas.addEventListener("pointerdown", event => { pressed = clamp(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", event => {
      const [px, py] = clamp(event);
      if (!pressed) { say(event.offsetX > LEFT && event.offsetY < height - BOTTOM ? hit(px, py) : -1, px, py); return; }
      tip.hidden = true;
      band.hidden = false;
      Object.assign(band.style, { left: `${Math.min(px, pressed[0])}px`, top: `${Math.min(py, pressed[1])}px`,
        width: `${Math.abs(px - pressed[0])}px`, height: `${Math.abs(py - pressed[1])}px` });
    });
    canvas.addEventListener("pointerup", event => {
      const [px, py] = clamp(event), [qx, qy] = pressed ?? [px, py];
      pressed = null;
      band.hidden = true;
      if (Math.abs(px - qx) < 6) return;
      // A flat drag zooms time alone.
      const rows = Math.abs(py - qy) < 12 ? [view.n0, view.n1]
        : [Math.floor(rowAt(Math.min(py, qy))), Math.ceil(rowAt(Math.max(py, qy)))];
      view = { t0: tickAt(Math.min(px, qx)), t1: tickAt(Math.max(px, qx)), n0: rows[0], n1: rows[1] };
      draw();
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("dblclick", () => { view = { ...all }; draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    host.watch?.disconnect();
    host.watch = new ResizeObserver(() => { if (host.clientWidth !== width) draw(); });
    host.watch.observe(host);
    draw();
    root.dataset.nodes = number(chart.bars);
  };

  return { show };
})();
