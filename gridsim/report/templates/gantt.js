// Gantt chart of the page: draws packed columns on a canvas. Work per frame is bounded: few pieces are drawn as
// rectangles, more are summed over the pixels that they cover, and the widest views use bins that are computed once.
(() => {
  "use strict";

  const ONE_BY_ONE = 4000; // largest number of pieces drawn as rectangles
  const ADDED_UP = 30000; // largest number of pieces summed per frame over all panels; above it, bins are used
  const BLOCK = 512; // pieces per entry of the index of ends
  const BINS = 8192; // bins of time over the whole log
  const CLASSES = { wait: [0, 600, 3600, 14400, 86400, Infinity] };
  const NAMES = {
    wait: ["none", "to 10 min", "to 1 h", "to 4 h", "to 1 day", "longer"],
    given: ["less than half as many", "fewer cores", "as requested", "more cores", "more than twice as many"],
  };
  const AXIS = 26;
  const STRETCHES = ["ofJob", "at", "wide", "since", "until"]; // earlier runs, and stretches before suspensions
  const SUSPENDED = 3; // index of the reason in gridsim.questions.schedules.STOPPED
  const ABSENT = ["failed nodes", "nodes in maintenance", "drained nodes", "", "reserved nodes"]; // gridsim.record.REASONS
  const LOWEST_BAND = 0.08; // share of the height of a chart
  const GAP = 24;

  // ---- columns ----------------------------------------------------------------------------------------------------

  const ARRAYS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };

  // Numbers from byte planes, lowest bytes first.
  function together(planes, length) {
    const width = planes.length / length || 1;
    if (width === 1) return planes;
    const bytes = new Uint8Array(planes.length);
    for (let place = 0; place < width; place++)
      for (let i = 0, from = place * length; i < length; i++) bytes[i * width + place] = planes[from + i];
    return bytes;
  }

  async function unpack(column, deflated) {
    const text = atob(column.data);
    let bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    if (deflated) {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      bytes = together(new Uint8Array(await new Response(stream).arrayBuffer()), column.length);
    }
    return new ARRAYS[column.type](bytes.buffer, 0, column.length);
  }

  function summed(steps) {
    const values = new Int32Array(steps.length);
    for (let i = 0, total = 0; i < steps.length; i++) values[i] = total += steps[i];
    return values;
  }

  async function load(pack) {
    if (pack.deflated && !("DecompressionStream" in window))
      throw new Error("This browser is too old to unpack the chart; use a browser of 2023 or later.");
    const get = async (column) => (column ? unpack(column, pack.deflated) : null);
    const data = {
      jobs: pack.jobs,
      cores: pack.cores,
      tick: pack.tick,
      since: pack.since,
      whole: !pack.note,
      sizes: pack.sizes,
      shown: pack.shown,
      opens: pack.opens,
      origin: pack.origin,
      names: pack.users || {},
      places: {},
      colours: {},
      dates: pack.dates,
      statuses: pack.statuses,
      job: summed(await get(pack.columns.job)),
      group: await get(pack.columns.whole),
      task: await get(pack.columns.task),
      part: await get(pack.columns.part),
      submit: summed(await get(pack.columns.submit)),
      runtime: await get(pack.columns.runtime),
      width: await get(pack.columns.cores),
      user: await get(pack.columns.user),
      estimate: await get(pack.columns.estimate),
      policies: [],
    };
    for (const [label, names] of Object.entries(pack.places || {})) data.places[label] = { names, values: await get(pack.columns[label]) };
    for (const [label, colour] of Object.entries(pack.colours || {})) data.colours[label] = { ...colour, values: await get(pack.columns[label]) };
    if (data.user) data.colours.user = { title: "user", names: data.names, values: data.user };
    if (pack.clusters) data.dag = await dag(pack, get, data);
    const bands = pack.bands || (pack.clusters && pack.clusters.length > 1 ? pack.clusters : null);
    if (pack.axes) {
      data.nodes = pack.nodes;
      data.axes = [];
      for (const packed of pack.axes) data.axes.push(await axisOf(packed, get));
    }
    layOut(data, data.axes ? data.axes[0].bands : bands);
    for (const packed of pack.policies) {
      const columns = await each(packed, get);
      const one = Object.assign(policy(data, packed, columns), gridsimWhy.partsOf(packed, columns), gridsimWhy.runsOf(columns));
      one.stretches = columns;
      lay(one, data.axes ? data.axes[0].held[data.policies.length] : columns);
      data.policies.push(one);
    }
    data.last = Math.max(1, ...data.policies.map((one) => one.last));
    return data;
  }

  // One resource of a machine of nodes: first row of each node, and amounts held by jobs under each policy.
  async function axisOf(packed, get) {
    const rows = await get(packed.rows), held = [];
    for (const one of packed.held) {
      const columns = { sizes: true };
      for (const name of ["pieces", "low", "size", "amount", "away", "many", "kind", "down", "up", ...STRETCHES]) columns[name] = await get(one[name]);
      columns.first = summed(Int32Array.of(0, ...columns.pieces));
      held.push(columns);
    }
    return { title: packed.title, scale: packed.scale, bands: packed.bands, node: await get(packed.node), begins: summed(Int32Array.of(0, ...rows)), held };
  }

  // Begin of each row of the chart, as a share of its height. Bands that would be too low for a name are enlarged.
  function layOut(data, bands) {
    const rows = bands ? bands.reduce((total, one) => total + one.cores, 0) : data.cores;
    const least = bands ? Math.min(LOWEST_BAND, 0.8 / bands.length) : 0;
    const heights = (bands || [{ cores: rows }]).map((one) => Math.max(least, one.cores / rows));
    const whole = heights.reduce((total, one) => total + one, 0);
    const edges = new Float64Array(rows + 1);
    let base = 0, above = 0;
    data.bands = (bands || [{ cores: rows }]).map((one, k) => {
      const high = heights[k] / whole, made = { ...one, base, above, high };
      for (let row = 0; row < one.cores; row++) edges[base + row] = above + (high * row) / one.cores;
      base += one.cores;
      above += high;
      return made;
    });
    edges[rows] = 1;
    data.rows = rows;
    data.edges = edges;
  }

  // For DAG jobs, each row is a task: its job, its successors, and delays between clusters.
  async function dag(pack, get, data) {
    const tasks = await get(pack.columns.tasks);
    const first = summed(Int32Array.of(0, ...tasks));
    const of = new Int32Array(data.jobs);
    for (let j = 0; j < tasks.length; j++) of.fill(j, first[j], first[j + 1]);
    const successors = await get(pack.columns.successors);
    const edges = new Int32Array(data.jobs + 1);
    for (let i = 0; i < data.jobs; i++) edges[i + 1] = edges[i] + successors[i];
    let base = 0;
    const clusters = pack.clusters.map((one) => ({ ...one, base: (base += one.cores) - one.cores }));
    return {
      first, of, edges, clusters,
      to: await get(pack.columns.successor), critical: await get(pack.columns.critical), path: await get(pack.columns.path),
      volume: await get(pack.columns.volume), levels: pack.levels, power: pack.power, tick: pack.delay_tick,
      contended: pack.contended, names: pack.names,
    };
  }

  async function each(packed, get) {
    const columns = {};
    for (const name of ["wait", "pieces", "low", "size", "runtime", "queued", "cluster", "cores", "unran", "later", "chain", "earlier", "cut", "began", "lasted", "stopped", "pool", "eligible", "free", "reported", "word", "spans", "lacked", "predicted", ...STRETCHES]) columns[name] = await get(packed[name]);
    return columns;
  }

  // Jobs of a policy, and their rows in order of start.
  function policy(data, packed, { wait, runtime, queued, cluster, cores, unran, later, chain, earlier, predicted }) {
    const n = data.jobs;
    const submit = later ? data.submit.map((at, i) => at + later[i]) : data.submit; // users who react submit at times that depend on the policy
    const held = runtime || data.runtime;
    const width = cores || data.width; // allocated cores of each job, if they differ from the requested ones
    if (cores) data.moldable = true;
    const order = later ? Int32Array.from(submit.keys()).sort((a, b) => submit[a] - submit[b] || a - b) : null; // order of arrival
    const places = later ? new Int32Array(n) : null;
    if (later) order.forEach((row, place) => { places[row] = place; });
    const start = new Int32Array(n);
    let ran = 0, last = 1;
    for (let i = 0; i < n; i++) {
      start[i] = wait[i] < 0 ? -1 : submit[i] + wait[i];
      ran += wait[i] >= 0;
      if (wait[i] >= 0 && start[i] + held[i] > last) last = start[i] + held[i];
    }
    const keys = new Float64Array(ran); // start and row in one number, for a fast native sort
    for (let i = 0, k = 0; i < n; i++) if (start[i] >= 0) keys[k++] = start[i] * 4194304 + i;
    keys.sort();
    return {
      label: packed.label, wait, submit, order, placeOf: (row) => (places ? places[row] : row), start, held, width, queued, cluster, chain, earlier, predicted, last,
      started: Int32Array.from(keys, (key) => key % 4194304),
      complete: packed.complete,
      status: (row) => (wait[row] < 0 ? data.statuses[unran[wait.subarray(0, row).reduce((count, one) => count + (one < 0), 0)]] : ""),
      place: data.dag ? new Int32Array(n).fill(-1) : null,
    };
  }

  // Pieces of a policy in order of start, and the latest end of each block as index. Without sizes, a single piece
  // has the cores of its job.
  function lay(one, { pieces, low, size, sizes }) {
    const n = pieces.length, m = low.length, several = sizes ? 0 : 1;
    const first = new Int32Array(n + 1), extra = new Int32Array(n + 1);
    for (let i = 0; i < n; i++) {
      first[i + 1] = first[i] + pieces[i];
      extra[i + 1] = extra[i] + (pieces[i] > several ? pieces[i] : 0);
    }
    Object.assign(one, {
      pieces, count: m, bins: {},
      from: new Int32Array(m), to: new Int32Array(m), low: new Int32Array(m), size: new Int32Array(m), row: new Int32Array(m),
      latest: new Int32Array(Math.ceil(m / BLOCK)),
    });
    let p = 0;
    for (const i of one.started) {
      if (one.place && pieces[i]) one.place[i] = p;
      for (let j = 0; j < pieces[i]; j++, p++) {
        one.from[p] = one.start[i];
        one.to[p] = one.start[i] + one.held[i];
        one.low[p] = low[first[i] + j];
        one.size[p] = pieces[i] > several ? size[extra[i] + j] : one.width[i];
        one.row[p] = i;
        const block = (p / BLOCK) | 0;
        if (one.to[p] > one.latest[block]) one.latest[block] = one.to[p];
      }
    }
  }

  function startsBefore(one, time) {
    let low = 0, high = one.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (one.from[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Pieces that hold cores in [from, to], or null if there are more than the limit.
  function visible(one, from, to, most) {
    const found = [];
    const end = startsBefore(one, to);
    for (let block = 0; block * BLOCK < end; block++) {
      if (one.latest[block] <= from) continue;
      const stop = Math.min(end, (block + 1) * BLOCK);
      for (let p = block * BLOCK; p < stop; p++) if (one.to[p] > from) found.push(p);
      if (found.length > most) return null;
    }
    return found;
  }

  // ---- colours ----------------------------------------------------------------------------------------------------

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let ink, idle, absent, palette, rgb;

  function readTheme() {
    ink = style("--ink");
    idle = style("--idle");
    absent = style("--absent");
    palette = { size: [], user: [], wait: [], given: [] };
    for (const mode of Object.keys(palette))
      for (let i = 0; i < 9 && style(`--${mode}-${i}`); i++) palette[mode].push(style(`--${mode}-${i}`));
    for (const label of ["account", "partition", "qos", "group", "queue"]) palette[label] = palette.user;
    rgb = {};
    for (const mode of Object.keys(palette)) rgb[mode] = palette[mode].map(channels);
  }

  function channels(hex) {
    const value = parseInt(hex.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  }

  function sizeColours(data, width) {
    const classes = new Uint8Array(data.jobs);
    for (let i = 0; i < data.jobs; i++) {
      let k = 0;
      while (k < data.sizes.length - 1 && width[i] > data.sizes[k]) k++;
      classes[i] = k;
    }
    return classes;
  }

  function givenColours(data, width) {
    return Uint8Array.from(width, (got, i) => {
      const asked = data.width[i];
      if (got === asked) return 2;
      return got < asked ? (2 * got < asked ? 0 : 1) : got > 2 * asked ? 4 : 3;
    });
  }

  // Classes of a label: the values with the most core-seconds, and all others.
  function nameColours(data, label, shown) {
    const colour = data.colours[label], area = new Map();
    for (let i = 0; i < data.jobs; i++)
      area.set(colour.values[i], (area.get(colour.values[i]) || 0) + data.width[i] * Math.max(0, data.runtime[i]));
    colour.others = area.size;
    colour.top = [...area].filter(([value]) => value >= 0).sort((a, b) => b[1] - a[1]).slice(0, shown).map(([value]) => value);
    colour.others -= colour.top.length;
    const place = new Map(colour.top.map((value, k) => [value, k]));
    return Uint8Array.from(colour.values, (value) => (place.has(value) ? place.get(value) : shown));
  }

  function waitColours(data, one) {
    const bounds = CLASSES.wait;
    const classes = new Uint8Array(data.jobs);
    for (let i = 0; i < data.jobs; i++) {
      let k = 0;
      while ((one.queued || one.wait)[i] * data.tick > bounds[k]) k++;
      classes[i] = k;
    }
    return classes;
  }

  function colours(data, one, mode) {
    if (mode === "wait") return (one.waitClass ||= waitColours(data, one));
    if (data.colours[mode]) return (data.colours[mode].classes ||= nameColours(data, mode, palette.user.length - 1));
    if (mode === "given") return (one.givenClass ||= givenColours(data, one.width));
    return (one.sizeClass ||= sizeColours(data, one.width));
  }

  function legend(data, mode) {
    if (NAMES[mode]) return NAMES[mode].map((name, k) => [name, palette[mode][k]]);
    const colour = data.colours[mode], { number } = gridsimWhy.words;
    if (colour) {
      const rows = colour.top.map((value, k) => [`${colour.title} ${colour.names[value] || value}`, palette.user[k]]);
      return colour.others ? [...rows, ["all others", palette.user[palette.user.length - 1]]] : rows;
    }
    return data.sizes.map((bound, k) => {
      const low = k ? data.sizes[k - 1] + 1 : 1;
      return [low === bound ? `${number(bound)} core${bound > 1 ? "s" : ""}` : `${number(low)} to ${number(bound)}`, palette.size[k], low, bound];
    }).filter(([, , low, bound]) => data.policies.some((one) => one.width.some((cores) => cores >= low && cores <= bound)));
  }

  // ---- drawing ----------------------------------------------------------------------------------------------------

  // Image of [from, to] in columns x rows cells, each with the mean colour of its pieces.
  function addUp(data, one, mode, list, from, to, columns, rows) {
    const sums = new Float32Array(columns * rows * 4);
    const classes = colours(data, one, mode);
    const perTick = columns / (to - from);
    const total = list ? list.length : one.count;
    for (let k = 0; k < total; k++) {
      const p = list ? list[k] : k;
      const x0 = Math.max(0, (one.from[p] - from) * perTick);
      const x1 = Math.min(columns, (one.to[p] - from) * perTick);
      const y0 = data.edges[one.low[p]] * rows;
      const y1 = Math.min(rows, data.edges[one.low[p] + one.size[p]] * rows);
      const [r, g, b] = rgb[mode][classes[one.row[p]]];
      for (let y = y0 | 0; y < y1; y++) {
        const tall = Math.min(y + 1, y1) - Math.max(y, y0);
        for (let x = x0 | 0, at = (y * columns + x) * 4; x < x1; x++, at += 4) {
          const covered = tall * (Math.min(x + 1, x1) - Math.max(x, x0));
          sums[at] += r * covered;
          sums[at + 1] += g * covered;
          sums[at + 2] += b * covered;
          sums[at + 3] += covered;
        }
      }
    }
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (let at = 0; at < sums.length; at += 4) {
      const covered = sums[at + 3];
      if (!covered) continue;
      image.data[at] = sums[at] / covered;
      image.data[at + 1] = sums[at + 1] / covered;
      image.data[at + 2] = sums[at + 2] / covered;
      image.data[at + 3] = Math.min(255, 255 * covered);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  // An amount of a resource: memory in GiB, whole GPUs instead of thousandths.
  function amountOf(axis, amount) {
    const value = Math.round((amount / axis.scale) * 100) / 100;
    return Number.isInteger(value) ? gridsimWhy.words.number(value) : String(value);
  }

  function start(root, data) {
    const canvas = root.querySelector("canvas");
    const tip = root.querySelector(".tip");
    const chosen = root.querySelector("[name=policy]");
    const colouring = root.querySelector("[name=colour]");
    const finder = root.querySelector("[name=job]");
    const why = document.getElementById("why"); // absent for DAG jobs
    const detail = (why || root).querySelector(".pinned");
    const ask = why && why.querySelector("form"), under = ask && ask.elements.under;
    const critical = root.querySelector("[name=critical]");
    const api = { data, lastBands: 0, lastArrows: 0, lastCrossing: 0, lastCritical: 0, lastDrawMs: 0, lastVisited: 0, lastRectangles: 0, ready: true };
    const margin = { left: 44, right: 8 };
    const ruler = canvas.getContext("2d");
    ruler.font = "11px system-ui, sans-serif";
    const bandsOf = data.axes ? data.axes.flatMap((axis) => axis.bands.map((band) => amountOf(axis, band.amount))) : data.bands.map((band) => gridsimWhy.words.number(band.cores));
    margin.left = Math.max(margin.left, 28 + Math.max(...bandsOf.map((text) => ruler.measureText(text).width)));
    let axisAt = 0; // resource shown by the rows
    const [opens, closes] = data.opens || [0, data.last];
    let view = { from: opens, to: Math.min(closes, data.last) };
    let pinned = -1;
    let asked = 0;

    data.policies.forEach((one, k) => chosen.add(new Option(one.label, String(k))));
    if (data.policies.length > 1) chosen.add(new Option("all, one below the other", "all"));
    chosen.value = String(data.shown);
    if (why) {
      data.policies.forEach((one, k) => under.add(new Option(one.label, String(k))));
      under.value = String(data.shown);
      for (const hidden of why.querySelectorAll(".asking")) hidden.hidden = false;
    }
    if (data.policies.length > 1 && data.policies.length < 5 && root.clientWidth > 600) chosen.value = "all";
    for (const [label, colour] of Object.entries(data.colours)) colouring.insertBefore(new Option(colour.title, label), colouring.querySelector("[value=wait]"));
    if (data.moldable) colouring.add(new Option("allocated cores", "given"));
    const rowsOf = root.querySelector("[name=rows]");
    if (rowsOf) {
      data.axes.forEach((axis, k) => rowsOf.add(new Option(axis.title.split(",")[0], String(k))));
      rowsOf.closest("label").hidden = data.axes.length < 2;
    }

    const panels = () => (chosen.value === "all" ? data.policies : [data.policies[Number(chosen.value)]]);
    const panelHeight = () => (chosen.value === "all" ? Math.max(120, Math.min(220, 620 / data.policies.length)) : root.clientWidth > 600 ? 380 : 260);
    const plotWidth = () => Math.max(50, canvas.clientWidth - margin.left - margin.right);
    const timeAt = (x) => view.from + ((x - margin.left) / plotWidth()) * (view.to - view.from);
    const yOf = (row, high) => data.edges[row] * high;
    const xOf = (time) => margin.left + ((time - view.from) / (view.to - view.from)) * plotWidth();

    function draw() {
      const began = performance.now();
      asked = 0;
      const mode = colouring.value;
      const ratio = window.devicePixelRatio || 1;
      const shown = panels();
      const height = shown.length * (panelHeight() + GAP) + AXIS;
      canvas.style.height = `${height}px`;
      const pixels = [Math.round(canvas.clientWidth * ratio), Math.round(height * ratio)];
      if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, canvas.clientWidth, height);
      context.font = "12px system-ui, sans-serif";
      api.lastVisited = api.lastRectangles = api.lastArrows = api.lastCrossing = api.lastCritical = api.lastBands = api.lastAbsences = api.lastEarlier = api.lastSuspended = 0;
      shown.forEach((one, k) => panel(context, one, mode, GAP + k * (panelHeight() + GAP), panelHeight(), ratio));
      axis(context, height - AXIS, shown.length);
      api.lastDrawMs = performance.now() - began;
    }

    function panel(context, one, mode, top, high, ratio) {
      const wide = plotWidth();
      context.fillStyle = ink;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(fitted(context, one.label, wide), margin.left, top - 7);
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "right";
      context.textBaseline = "middle";
      const { number } = gridsimWhy.words, banded = data.bands.length > 1;
      const axis = data.axes && data.axes[axisAt];
      const amountText = (band) => (axis ? amountOf(axis, band.amount) : number(band.cores));
      if (banded) {
        for (const band of data.bands) if (band.high * high >= 11) context.fillText(amountText(band), margin.left - 5, top + (band.above + band.high / 2) * high);
      } else {
        context.fillText("0", margin.left - 5, top + 5);
        context.fillText(axis ? amountText(data.bands[0]) : number(data.cores), margin.left - 5, top + high - 5);
      }
      context.textAlign = "center";
      context.save();
      context.translate(12, top + high / 2);
      context.rotate(-Math.PI / 2);
      context.fillText(axis ? axis.title : "cores", 0, 0);
      context.restore();
      context.fillStyle = idle;
      context.fillRect(margin.left, top, wide, high);
      context.save();
      context.beginPath();
      context.rect(margin.left, top, wide, high);
      context.clip();
      if (axis) absences(context, axis.held[data.policies.indexOf(one)], top, high);
      const list = visible(one, view.from, view.to, ADDED_UP / panels().length);
      api.lastVisited += list ? list.length : 0;
      if (!list) stretch(context, one, mode, top, wide, high);
      else if (list.length > ONE_BY_ONE) {
        const rows = data.bands.length > 1 ? Math.round(high * ratio) : Math.min(data.rows, Math.round(high * ratio));
        const picture = addUp(data, one, mode, list, view.from, view.to, Math.round(wide * ratio), rows);
        context.imageSmoothingEnabled = false;
        context.drawImage(picture, margin.left, top, wide, high);
        api.lastRectangles += 1;
      } else rectangles(context, one, mode, list, top, high);
      earlierRuns(context, one, mode, top, high);
      if (pinned >= 0) (data.dag ? markJob : mark)(context, one, top, high, mode);
      if (banded) nameBands(context, top, high, wide);
      context.restore();
    }

    // Absent nodes and GPUs, below the jobs: those of a drain still run.
    function absences(context, { away, many, kind, down, up }, top, high) {
      if (!away) return;
      for (let k = 0; k < away.length; k++) {
        if (up[k] <= view.from || down[k] >= view.to) continue;
        const x = Math.max(margin.left, xOf(down[k])), y = yOf(away[k], high);
        context.fillStyle = kind[k] ? hatched(context, kind[k]) : absent;
        context.fillRect(x, top + y, Math.max(1, xOf(Math.min(up[k], view.to)) - x), yOf(away[k] + many[k], high) - y);
        api.lastAbsences += 1;
      }
    }

    // Stripes of windows: rising for maintenance, falling for drains, upright for reservations.
    function hatched(context, kind) {
      const tile = document.createElement("canvas"), size = 8;
      tile.width = tile.height = size;
      const pen = tile.getContext("2d");
      pen.strokeStyle = absent;
      pen.lineWidth = 2.5;
      if (kind === 2) pen.setTransform(-1, 0, 0, 1, size, 0);
      if (kind === 4) pen.setTransform(1, 0, 1, 1, -size / 2, 0);
      pen.beginPath();
      for (const shift of [-size, 0, size]) {
        pen.moveTo(shift - 1, size + 1);
        pen.lineTo(shift + size + 1, -1);
      }
      pen.stroke();
      return context.createPattern(tile, "repeat");
    }

    const stretchesOf = (one) => (data.axes ? data.axes[axisAt].held[data.policies.indexOf(one)] : one.stretches);

    // Runs that were interrupted or stopped, paler than the last ones; stretches of a last run that was suspended are
    // joined by a dashed line.
    function earlierRuns(context, one, mode, top, high) {
      const { ofJob, at, wide, since, until } = stretchesOf(one);
      if (!ofJob) return;
      const classes = colours(data, one, mode);
      for (let k = 0; k < ofJob.length; k++) {
        const runs = one.runs.get(ofJob[k]) || [], place = runs.findIndex(([from]) => from === since[k]);
        const resumes = place < 0 ? 0 : place + 1 < runs.length ? runs[place + 1][0] : one.start[ofJob[k]];
        const suspended = place >= 0 && runs.slice(place).every((run) => run[2] === SUSPENDED);
        if ((suspended ? resumes : until[k]) <= view.from || since[k] >= view.to) continue;
        context.globalAlpha = suspended ? 1 : 0.5;
        const x = Math.max(margin.left, xOf(since[k])), y = yOf(at[k], high);
        context.fillStyle = palette[mode][classes[ofJob[k]]];
        context.fillRect(x, top + y, Math.max(0.7, xOf(Math.min(until[k], view.to)) - x - 0.5), yOf(at[k] + wide[k], high) - y);
        api.lastEarlier += 1;
        if (suspended) {
          const middle = top + (yOf(at[k], high) + yOf(at[k] + wide[k], high)) / 2;
          context.strokeStyle = ink;
          context.setLineDash([3, 2]);
          context.lineWidth = 1.5;
          context.beginPath();
          context.moveTo(xOf(until[k]), middle);
          context.lineTo(xOf(resumes), middle);
          context.stroke();
          context.setLineDash([]);
          api.lastSuspended += 1;
        }
      }
      context.globalAlpha = 1;
    }

    // A text without its middle if it is too wide.
    function fitted(context, text, room) {
      let kept = text.length;
      let shown = text;
      while (kept > 8 && context.measureText(shown).width > room) {
        kept -= 1;
        shown = `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
      }
      return shown;
    }

    function nameBands(context, top, high, wide) {
      context.textAlign = "left";
      context.textBaseline = "top";
      context.font = "600 11px system-ui, sans-serif";
      context.lineJoin = "round";
      context.lineWidth = 3;
      for (const band of data.bands) {
        const y = top + band.above * high;
        context.fillStyle = ink;
        if (band.base) context.fillRect(margin.left, y - 0.5, wide, 1);
        if (band.high * high < 13) continue;
        context.strokeStyle = style("--paper");
        context.strokeText(band.name, margin.left + 4, y + 2);
        context.fillText(band.name, margin.left + 4, y + 2);
        api.lastBands += 1;
      }
    }

    function stretch(context, one, mode, top, wide, high) {
      const bins = (one.bins[mode] ||= addUp(data, one, mode, null, 0, data.last, BINS, data.bands.length > 1 ? 256 : Math.min(data.rows, 256)));
      const left = (view.from / data.last) * BINS;
      context.imageSmoothingEnabled = true;
      context.imageSmoothingQuality = "high";
      const across = ((view.to - view.from) / data.last) * BINS;
      context.drawImage(bins, left, 0, across, bins.height, margin.left, top, wide, high);
      api.lastRectangles += 1;
    }

    function rectangles(context, one, mode, list, top, high) {
      const classes = colours(data, one, mode);
      const buckets = palette[mode].map(() => []);
      for (const p of list) buckets[classes[one.row[p]]].push(p);
      const perTick = plotWidth() / (view.to - view.from);
      buckets.forEach((bucket, k) => {
        context.fillStyle = palette[mode][k];
        for (const p of bucket) {
          const x = Math.max(-2, margin.left + (one.from[p] - view.from) * perTick);
          const end = Math.min(canvas.clientWidth + 2, margin.left + (one.to[p] - view.from) * perTick);
          const y = yOf(one.low[p], high), w = end - x, h = yOf(one.low[p] + one.size[p], high) - y;
          context.fillRect(x, top + y, w > 4 ? w - 1 : Math.max(w, 0.7), h > 4 ? h - 1 : h > 2 ? h - 0.5 : h);
        }
      });
      api.lastRectangles += list.length;
    }

    // The pinned job: a frame around its pieces, and a line from its submission to its start.
    function mark(context, one, top, high) {
      if (one.start[pinned] < 0) return;
      context.strokeStyle = ink;
      context.lineWidth = 2;
      let middle = null;
      for (let p = startsBefore(one, one.start[pinned]); p < one.count && one.from[p] === one.start[pinned]; p++) {
        if (one.row[p] !== pinned) continue;
        const x = xOf(one.from[p]), y = top + yOf(one.low[p], high), tall = top + yOf(one.low[p] + one.size[p], high) - y;
        context.strokeRect(x, y, Math.max(2, xOf(one.to[p]) - x), Math.max(2, tall));
        middle ??= y + tall / 2;
      }
      if (middle === null || one.wait[pinned] === 0) return;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(xOf(one.submit[pinned]), middle);
      context.lineTo(xOf(one.start[pinned]), middle);
      context.stroke();
      context.setLineDash([]);
    }

    // ---- DAG jobs -------------------------------------------------------------------------------------------------

    const jobOf = (row) => data.dag.of[row];
    const tasksOf = (row) => [data.dag.first[jobOf(row)], data.dag.first[jobOf(row) + 1]];
    const nameOf = (row) => (data.dag.names ? data.dag.names[row] : `task ${row - tasksOf(row)[0]}`);
    const clusterOf = (one, row) => (one.cluster ? one.cluster[row] : 0);

    // Edges to a task: rows of its predecessors and indices of the edges.
    function incoming(row) {
      const [from, to] = tasksOf(row), found = [];
      for (let source = from; source < to; source++)
        for (let edge = data.dag.edges[source]; edge < data.dag.edges[source + 1]; edge++)
          if (data.dag.to[edge] === row) found.push([source, edge]);
      return found;
    }

    // Delay between two clusters on an idle network, ticks of the chart.
    function delay(edge, from, to) {
      const { volume, levels, power, tick } = data.dag;
      return from === to || !volume ? 0 : Math.ceil(volume[edge] * levels[from][to] ** power - 1e-9) * tick;
    }

    function chainOf(row) {
      const [from, to] = tasksOf(row), chain = [];
      for (let task = from; task < to; task++) if (data.dag.critical[task]) chain.push(task);
      return chain.sort((a, b) => data.policies[0].start[a] - data.policies[0].start[b] || a - b);
    }

    function boxOf(one, row, top, high) {
      const p = one.place[row];
      if (p < 0) return null;
      const y = top + yOf(one.low[p], high), tall = top + yOf(one.low[p] + one.size[p], high) - y;
      return { x: xOf(one.from[p]), end: xOf(one.to[p]), y, high: tall, middle: y + tall / 2 };
    }

    // The job of the pinned task: its tasks in full colour, other jobs paler, transfers to the task as arrows.
    function markJob(context, one, top, high, mode) {
      const [from, to] = tasksOf(pinned), classes = colours(data, one, mode);
      context.globalAlpha = 0.6;
      context.fillStyle = style("--paper");
      context.fillRect(margin.left, top, plotWidth(), high);
      context.globalAlpha = 1;
      for (let row = from; row < to; row++) {
        if (one.place[row] < 0) continue;
        context.fillStyle = palette[mode][classes[row]];
        for (let p = one.place[row], k = 0; k < one.pieces[row]; k++, p++) {
          const y = yOf(one.low[p], high), h = Math.max(1, yOf(one.low[p] + one.size[p], high) - y);
          const x = xOf(one.from[p]), w = Math.max(1, xOf(one.to[p]) - x);
          context.fillRect(x, top + y, w > 4 ? w - 1 : w, h > 4 ? h - 1 : h);
        }
      }
      if (critical.checked) markPath(context, one, top, high);
      const target = boxOf(one, pinned, top, high);
      if (!target) return;
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.strokeRect(target.x, target.y, Math.max(2, target.end - target.x), Math.max(2, target.high));
      for (const [source, edge] of incoming(pinned)) arrow(context, one, source, edge, target, top, high);
    }

    function markPath(context, one, top, high) {
      const chain = chainOf(pinned);
      context.strokeStyle = style("--path");
      context.lineWidth = 2;
      let before = null;
      for (const row of chain) {
        const box = boxOf(one, row, top, high);
        if (!box) continue;
        context.strokeRect(box.x, box.y, Math.max(2, box.end - box.x), Math.max(2, box.high));
        if (before) {
          context.beginPath();
          context.moveTo(before.end, before.middle);
          context.lineTo(box.x, box.middle);
          context.stroke();
        }
        api.lastCritical += 1;
        before = box;
      }
    }

    function arrow(context, one, source, edge, target, top, high) {
      const box = boxOf(one, source, top, high);
      if (!box) return;
      const [from, to] = [clusterOf(one, source), clusterOf(one, pinned)];
      const x = box.end, y = box.middle, angle = Math.atan2(target.middle - y, target.x - x);
      context.strokeStyle = context.fillStyle = ink;
      context.lineWidth = 1.5;
      context.setLineDash(from === to ? [] : [5, 4]);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(target.x, target.middle);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      for (const [along, across] of [[0, 0], [-8, -3.5], [-8, 3.5]])
        context.lineTo(target.x + along * Math.cos(angle) - across * Math.sin(angle), target.middle + along * Math.sin(angle) + across * Math.cos(angle));
      context.fill();
      api.lastArrows += 1;
      if (from === to) return;
      api.lastCrossing += 1;
      const took = delay(edge, from, to);
      if (!took) return;
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.lineWidth = 3;
      context.strokeStyle = style("--paper");
      const text = `${data.dag.contended ? "≥ " : ""}${duration(took)}`, at = [(x + target.x) / 2, (y + target.middle) / 2];
      context.strokeText(text, ...at);
      context.fillText(text, ...at);
    }

    function pinTask(row) {
      const chain = chainOf(row), job = data.job[row], needs = incoming(row);
      const listed = (rows) => (rows.length > 12 ? [...rows.slice(0, 6).map(nameOf), "…", ...rows.slice(-5).map(nameOf)] : rows.map(nameOf));
      const lines = [
        `Job ${job}, ${nameOf(row)}: ${data.moldable ? "requests " : ""}${gridsimWhy.words.number(data.width[row])} core${data.width[row] > 1 ? "s" : ""}${data.moldable ? "" : `, ran ${duration(data.runtime[row])}`}. ` +
          (needs.length ? `Needs ${listed(needs.map(([source]) => source)).join(", ")}.` : "Needs no other task."),
      ];
      const path = node("p", `Critical path of job ${job}, ${duration(data.dag.path[jobOf(row)])}, ${chain.length} task${chain.length > 1 ? "s" : ""}: ${listed(chain).join(" → ")}.`);
      path.className = "path";
      const table = document.createElement("table"), body = table.createTBody(), top = table.createTHead().insertRow();
      const several = data.dag.clusters.length > 1, sized = data.moldable ? ["cores", "ran"] : [];
      for (const name of ["policy", "task starts", "waited when ready", ...sized, ...(several ? ["cluster"] : []), "job takes", "SLR"])
        top.append(Object.assign(node("th", name), { scope: "col" }));
      for (const one of data.policies) {
        const line = body.insertRow(), ran = one.start[row] >= 0;
        line.append(Object.assign(node("th", one.label), { scope: "row" }));
        line.append(node("td", ran ? when(one.start[row]) : "did not run"), node("td", ran ? duration(one.queued[row]) : ""));
        if (data.moldable) line.append(...sizedCells(one, row));
        if (several) line.append(node("td", ran ? data.dag.clusters[clusterOf(one, row)].name : ""));
        const took = responseOf(one, row);
        line.append(node("td", duration(took)), node("td", (took / data.dag.path[jobOf(row)]).toPrecision(3)));
      }
      detail.replaceChildren(...lines.map((text) => node("p", text)), path, scrolled(table));
    }

    function scrolled(table) {
      const scroll = node("div", "");
      scroll.className = "scroll";
      scroll.tabIndex = 0;
      scroll.append(table);
      return scroll;
    }

    function responseOf(one, row) {
      const [from, to] = tasksOf(row);
      let last = 0;
      for (let task = from; task < to; task++) if (one.start[task] >= 0) last = Math.max(last, one.start[task] + one.held[task]);
      return last - data.submit[row];
    }

    function axis(context, y, count) {
      const span = (view.to - view.from) * data.tick;
      const room = Math.max(2, Math.floor(plotWidth() / 95));
      const steps = [0.001, 0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2419200, 4838400, 9676800, 12096000, 15724800, 31536000];
      const step = steps.find((candidate) => span / candidate <= room) || 63072000;
      context.fillStyle = ink;
      context.textBaseline = "middle";
      context.textAlign = "center";
      context.strokeStyle = style("--rule");
      context.lineWidth = 1;
      const [first, last] = [view.from, view.to].map((time) => shownTime(time));
      api.lastTicks = [];
      for (let time = Math.ceil(first / step) * step, before = null; time <= last; before = time, time += step) {
        const x = Math.round(xOf(ticksAt(time))) + 0.5;
        context.beginPath();
        for (let k = 0; k < count; k++) {
          const bottom = GAP + k * (panelHeight() + GAP) + panelHeight();
          context.moveTo(x, bottom);
          context.lineTo(x, bottom + 4);
        }
        context.stroke();
        const text = data.dates ? tickText(time, before, step) : moment(time, step);
        api.lastTicks.push(text);
        const half = context.measureText(text).width / 2;
        context.fillText(text, Math.min(Math.max(x, half + 2), canvas.clientWidth - half - 2), y + AXIS / 2 - 2);
      }
    }

    const two = (value) => String(value).padStart(2, "0");

    // Seconds of the axis: local time if the log has dates, else since its first submission.
    const shownTime = (ticks) => (data.dates ? wall(data.origin + ticks * data.tick) : ticks * data.tick + data.since);

    const ticksAt = (time) => (data.dates ? logTime(time) - data.origin : time - data.since) / data.tick;

    const aheadAt = (second) => gridsimWhy.aheadAt(data.dates, second);

    const wall = (second) => data.dates.epoch + second + aheadAt(second);

    function logTime(time) {
      const utc = time - data.dates.epoch;
      return utc - aheadAt(utc - data.dates.ahead[0][1]);
    }

    const dateOf = (time) => new Date(Math.floor(time + 1e-6) * 1000).toISOString();

    const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

    // The day and the year, if they differ from those of the previous tick.
    function tickText(time, before, step) {
      const date = dateOf(time), last = before === null ? "" : dateOf(before);
      const day = `${Number(date.slice(8, 10))} ${MONTHS[Number(date.slice(5, 7)) - 1]}`;
      const dated = date.slice(0, 4) === last.slice(0, 4) ? day : `${day} ${date.slice(0, 4)}`;
      if (step >= 86400) return dated;
      const clock = step < 60 ? date.slice(11, 19) : date.slice(11, 16);
      return date.slice(0, 10) === last.slice(0, 10) ? clock : `${day}, ${clock}`;
    }

    function when(ticks) {
      if (!data.dates) return moment(ticks * data.tick + data.since, data.dag && data.tick < 1 && data.last * data.tick < 7200 ? data.tick : 1);
      const date = dateOf(wall(data.origin + ticks * data.tick));
      return `${date.slice(0, 10)} ${date.slice(17, 19) === "00" ? date.slice(11, 16) : date.slice(11, 19)}`;
    }

    // Day and time of day since the first submission of the log.
    function moment(time, step) {
      const day = Math.floor(time / 86400), rest = time - day * 86400;
      if (step >= 86400) return `day ${day}`;
      const clock = `${two(Math.floor(rest / 3600))}:${two(Math.floor((rest % 3600) / 60))}`;
      return `day ${day}, ${step < 60 ? `${clock}:${step < 1 ? (rest % 60).toFixed(3).padStart(6, "0") : two(Math.floor(rest % 60))}` : clock}`;
    }

    const duration = (ticks) => gridsimWhy.words.duration(ticks * data.tick);

    // ---- queries -------------------------------------------------------------------------------------------------

    function later() {
      if (!asked) asked = requestAnimationFrame(draw);
    }

    function look(from, to) {
      const span = Math.min(data.last, Math.max(Math.min(20, data.last), to - from));
      const left = Math.min(Math.max(0, from), data.last - span);
      view = { from: left, to: left + span };
      later();
    }

    function zoom(factor, at = 0.5) {
      const span = view.to - view.from;
      const centre = view.from + at * span;
      look(centre - at * span * factor, centre + (1 - at) * span * factor);
    }

    // The row of the chart at a share of its height.
    function rowAt(share) {
      let low = 0, high = data.rows;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (data.edges[middle] <= share) low = middle;
        else high = middle;
      }
      return low;
    }

    function panelAt(y) {
      const k = Math.floor((y - GAP / 2) / (panelHeight() + GAP));
      const one = panels()[k];
      const top = GAP + k * (panelHeight() + GAP);
      return one && y >= top && y < top + panelHeight() ? [one, rowAt((y - top) / panelHeight())] : [null, 0];
    }

    // Row of the job below the pointer, or within one pixel of it for narrow jobs.
    function jobAt(x, y) {
      const [one, core] = panelAt(y);
      if (!one || x < margin.left) return [-1, null];
      const reach = (view.to - view.from) / plotWidth() / 2;
      const list = visible(one, timeAt(x) - reach, timeAt(x) + reach, Infinity);
      const hit = list.find((p) => one.low[p] <= core && core < one.low[p] + one.size[p]);
      if (hit !== undefined) return [one.row[hit], one];
      const { ofJob, at, wide, since, until } = stretchesOf(one);
      const k = ofJob ? ofJob.findIndex((row, k) => at[k] <= core && core < at[k] + wide[k] && since[k] <= timeAt(x) + reach && until[k] >= timeAt(x) - reach) : -1;
      return [k < 0 ? -1 : ofJob[k], one];
    }

    // Allocated cores of a job, and its run time on them.
    function sizedCells(one, row) {
      const ran = one.start[row] >= 0;
      return [node("td", ran ? gridsimWhy.words.number(one.width[row]) : ""), node("td", ran ? duration(one.held[row]) : "")];
    }

    // Allocated cores, and requested ones if they differ.
    function coresOf(row, one) {
      const { number } = gridsimWhy.words, asked = number(data.width[row]), got = one ? number(one.width[row]) : "";
      if (!data.moldable) return ["Cores", asked];
      return one && one.start[row] >= 0 ? ["Cores", got === asked ? `${asked}, as requested` : `${got}, requested ${asked}`] : ["Requested cores", asked];
    }

    // Amounts of each resource that a job held under a policy, and its nodes.
    function heldOf(row, one) {
      if (!data.axes || !one || one.start[row] < 0) return [];
      const k = data.policies.indexOf(one), rows = [], nodes = new Set();
      for (const axis of data.axes) {
        const held = axis.held[k];
        if (!held.amount[row]) continue;
        if (axis !== data.axes[0]) rows.push([axis.title[0].toUpperCase() + axis.title.slice(1), amountOf(axis, held.amount[row])]);
        for (let p = held.first[row]; p < held.first[row + 1]; p++) {
          let node = nodeAt(axis, held.low[p]);
          for (; node < axis.node.length && axis.begins[node] < held.low[p] + held.size[p]; node++) nodes.add(axis.node[node]);
        }
      }
      const names = [...nodes].sort((a, b) => a - b).map((node) => data.nodes[node]);
      const shown = names.length > 6 ? `${names.slice(0, 5).join(", ")} and ${gridsimWhy.words.number(names.length - 5)} more` : names.join(", ");
      return [...rows, [names.length === 1 ? "Node" : "Nodes", shown]];
    }

    function nodeAt(axis, row) {
      let low = 0, high = axis.node.length;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (axis.begins[middle] <= row) low = middle;
        else high = middle;
      }
      return low;
    }

    function facts(row, one) {
      const rows = [["Job", gridsimWhy.idOf(data, row)]];
      if (data.dag) {
        rows.push(["Task", nameOf(row)], coresOf(row, one));
        if (one && data.dag.clusters.length > 1) rows.push(["Cluster", data.dag.clusters[clusterOf(one, row)].name]);
        if (one) rows.push(["Started", when(one.start[row])], ["Waited when ready", duration(one.queued[row])]);
        return [...rows, ["Ran", duration((one || data.policies[0]).held[row])]];
      }
      if (data.user && data.user[row] >= 0) rows.push(["User", gridsimWhy.userOf(data, row)]);
      for (const [label, title] of [["account", "Account"], ["partition", "Partition"], ["qos", "QOS"]]) {
        const name = gridsimWhy.placeOf(data, label, row);
        if (name) rows.push([title, name]);
      }
      rows.push(coresOf(row, one), ...heldOf(row, one), ["Submitted", when((one || data.policies[0]).submit[row])]);
      if (one) rows.push(["Waited", one.start[row] < 0 ? "did not run" : duration(gridsimWhy.waited(one, row))]);
      if (one || !data.moldable) rows.push(["Ran", duration((one || data.policies[0]).held[row])]);
      if (one && one.predicted && one.predicted[row] >= 0) rows.push(["Predicted", duration(one.predicted[row] * data.tick)]);
      return rows;
    }

    function hover(x, y) {
      const [row, one] = jobAt(x, y);
      tip.hidden = row < 0;
      canvas.style.cursor = row < 0 ? "grab" : "pointer";
      if (row < 0) return;
      tip.replaceChildren(...facts(row, one).flatMap(([name, value]) => [node("dt", name), node("dd", value)]));
      const left = Math.min(x + 14, canvas.clientWidth - tip.offsetWidth - 4);
      const below = y + 18 + tip.offsetHeight < canvas.clientHeight;
      tip.style.transform = `translate(${Math.max(0, left)}px, ${below ? y + 18 : Math.max(0, y - tip.offsetHeight - 10)}px)`;
    }

    function node(name, text) {
      const made = document.createElement(name);
      made.textContent = text;
      return made;
    }

    // A click explains the job under the policy of the clicked panel.
    function pin(row, one) {
      pinned = row;
      later();
      if (data.dag) {
        detail.hidden = row < 0;
        if (row >= 0) pinTask(row);
        return;
      }
      if (one) under.value = String(data.policies.indexOf(one));
      detail.hidden = row < 0;
      why.querySelector(".example").hidden = row >= 0;
      if (row < 0) return say([]);
      ask.elements.wanted.value = finder.value = gridsimWhy.idOf(data, row);
      tell(row, data.policies[Number(under.value)]);
    }

    // Screen readers announce only this element.
    function say(lines) {
      const together = (line) => line.replace(/(\d) (?=(%|d|h|min|s|cores?|jobs?)(?![a-z]))/g, "$1\u00a0");
      why.querySelector(".explanation").replaceChildren(...lines.map((line) => node("p", together(line))));
    }

    const INSTEAD = "To explain it, use gridsim explain with the folder of this page and the number of the job.";

    function explained(row, one) {
      if (gridsimWhy.complete(data, one, row)) return gridsimWhy.sentences(gridsimWhy.explain(data, one, row), one.label);
      return [`Jobs that are not on this page held cores or waited while job ${gridsimWhy.idOf(data, row)} waited under ${one.label}. ${INSTEAD}`];
    }

    function tell(row, one) {
      say(explained(row, one));
      const head = facts(row, null).map(([name, value]) => `${name.toLowerCase()} ${value}`).join(", ");
      const table = document.createElement("table");
      const body = table.createTBody();
      const top = table.createTHead().insertRow();
      const columns = ["policy", "start", "wait", "too few free cores", "held by the policy", "later jobs first", ...(data.moldable ? ["cores", "ran"] : [])];
      for (const name of columns) top.append(Object.assign(node("th", name), { scope: "col" }));
      for (const one of data.policies) {
        const line = body.insertRow();
        line.append(Object.assign(node("th", one.label), { scope: "row" }));
        const ran = one.start[row] >= 0;
        line.append(node("td", ran ? when(one.start[row]) : "did not run"), node("td", ran ? duration(gridsimWhy.waited(one, row)) : ""));
        line.append(...reasons(one, row));
        if (data.moldable) line.append(...sizedCells(one, row));
      }
      table.createCaption().textContent = `Job ${gridsimWhy.idOf(data, row)} under each policy`;
      table.caption.className = "unseen";
      detail.replaceChildren(node("p", head[0].toUpperCase() + head.slice(1) + "."), scrolled(table));
    }

    // Time with too few and with enough free cores, and number of later jobs that started first; empty if unknown.
    function reasons(one, row) {
      if (one.start[row] < 0 || !gridsimWhy.complete(data, one, row)) return ["", "", ""].map((text) => node("td", text));
      const found = gridsimWhy.explain(data, one, row), { duration: lengthText, number } = gridsimWhy.words;
      return [lengthText(found.short), lengthText(found.enough), number(found.passed)].map((text) => node("td", text));
    }

    // The job of the search field below the chart.
    function question() {
      const { row, unread, why: none } = gridsimWhy.rowOf(data, ask.elements.wanted.value);
      if (row >= 0) return find(ask.elements.wanted.value);
      pin(-1);
      const text = `${none[0].toUpperCase()}${none.slice(1)}.`;
      return say([data.whole || unread ? text : `Job ${ask.elements.wanted.value} is not on this page. ${INSTEAD}`]);
    }

    function find(asked) {
      const { row, why: none } = gridsimWhy.rowOf(data, asked);
      finder.setCustomValidity(row < 0 ? `Not in this chart: ${none}` : "");
      finder.reportValidity();
      if (row < 0) return;
      if (data.dag) {
        const took = Math.max(...data.policies.map((one) => responseOf(one, row)));
        look(data.submit[row] - took * 0.05, data.submit[row] + took * 1.05);
        pin(chainOf(row).at(-1));
        return;
      }
      const starts = data.policies.map((one) => one.start[row]).filter((time) => time >= 0);
      const from = Math.min(...data.policies.map((one) => one.submit[row])), to = Math.max(from, ...starts) + Math.max(1, data.runtime[row]);
      look(from - (to - from) * 0.5, to + (to - from) * 0.5);
      pin(row);
    }

    // ---- input ----------------------------------------------------------------------------------------------------

    const pointers = new Map();
    let pressed = null;
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const share = (x) => Math.min(1, Math.max(0, (x - margin.left) / plotWidth()));

    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const move = (event.deltaX / plotWidth()) * (view.to - view.from);
        look(view.from + move, view.to + move);
      } else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), share(inside(event)[0]));
    }, { passive: false });

    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, inside(event));
      pressed = { at: inside(event), view, moved: pointers.size > 1 };
    });

    canvas.addEventListener("pointermove", (event) => {
      const here = inside(event);
      if (!pointers.has(event.pointerId)) return hover(...here);
      const before = [...pointers.values()].map(([x]) => x);
      pointers.set(event.pointerId, here);
      if (pointers.size === 2) {
        const now = [...pointers.values()].map(([x]) => x);
        pinch(Math.min(...before), Math.max(...before), Math.min(...now), Math.max(...now));
      } else if (pressed) {
        const shift = here[0] - pressed.at[0];
        if (Math.abs(shift) > 3) pressed.moved = true;
        if (pressed.moved) {
          const move = (-shift / plotWidth()) * (pressed.view.to - pressed.view.from);
          look(pressed.view.from + move, pressed.view.to + move);
          tip.hidden = true;
        }
      }
      return undefined;
    });

    function pinch(a, b, c, d) {
      const [from, to] = [timeAt(a), timeAt(b)];
      const perPixel = (to - from) / Math.max(10, d - c);
      const left = from - (c - margin.left) * perPixel;
      pressed.moved = true;
      look(left, left + perPixel * plotWidth());
    }

    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, (event) => {
        if (name === "pointerup" && pressed && !pressed.moved) {
          pin(...jobAt(...inside(event)));
          hover(...inside(event));
        }
        pointers.delete(event.pointerId);
        if (!pointers.size) pressed = null;
        else pressed = { at: [...pointers.values()][0], view, moved: true };
      });
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));

    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = (view.to - view.from) / 5;
      const actions = {
        ArrowLeft: () => look(view.from - step, view.to - step),
        ArrowRight: () => look(view.from + step, view.to + step),
        ArrowUp: () => zoom(0.7), ArrowDown: () => zoom(1 / 0.7),
        "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7),
        0: () => look(0, data.last), Home: () => look(0, data.last), Escape: () => pin(-1),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    });

    root.querySelector("[name=in]").addEventListener("click", () => zoom(0.5));
    root.querySelector("[name=out]").addEventListener("click", () => zoom(2));
    root.querySelector("[name=all]").addEventListener("click", () => look(0, data.last));
    chosen.addEventListener("change", later);
    colouring.addEventListener("change", recolour);
    if (rowsOf) rowsOf.addEventListener("change", () => {
      axisAt = Number(rowsOf.value);
      layOut(data, data.axes[axisAt].bands);
      data.policies.forEach((one, k) => lay(one, data.axes[axisAt].held[k]));
      later();
    });
    if (critical) critical.addEventListener("change", later);
    root.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      find(finder.value);
    });
    finder.addEventListener("input", () => finder.setCustomValidity(""));
    if (ask) {
      ask.addEventListener("submit", (event) => {
        event.preventDefault();
        question();
      });
      under.addEventListener("change", () => pinned >= 0 && tell(pinned, data.policies[Number(under.value)]));
    }

    function recolour() {
      colours(data, data.policies[0], colouring.value);
      const rows = legend(data, colouring.value);
      const kinds = new Set((data.axes || []).flatMap((axis) => axis.held.flatMap((held) => [...(held.kind || [])])));
      for (const kind of [...kinds].sort()) {
        const stripes = `repeating-linear-gradient(${{ 2: 45, 4: 90 }[kind] || 135}deg, ${absent} 0 2px, ${idle} 2px 5px)`;
        rows.push([ABSENT[kind], kind ? stripes : absent]);
      }
      root.querySelector(".legend").replaceChildren(...rows.map(([name, colour]) => {
        const item = node("li", name);
        item.style.setProperty("--swatch", colour);
        return item;
      }));
      later();
    }

    function theme() {
      readTheme();
      for (const one of data.policies) one.bins = {};
      recolour();
    }

    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
    new ResizeObserver(later).observe(root);
    theme();
    draw();
    return Object.assign(api, { draw, zoom, look, pin, find, jobAt, explained, pinned: () => pinned, view: () => ({ ...view }) });
  }

  async function main() {
    const root = document.getElementById("gantt");
    if (!root) return;
    try {
      const data = await load(JSON.parse(document.getElementById("gantt-data").textContent));
      root.querySelector(".chart").hidden = false;
      root.querySelector(".loading").hidden = true;
      window.gridsimGantt = start(root, data);
    } catch (error) {
      root.querySelector(".loading").textContent = `The chart could not be drawn: ${error.message}`;
      console.error(error);
    }
  }

  // Data files of the page are compressed; a click on their name anywhere saves them as plain text.
  async function save(link) {
    const [, text] = link.href.split(",", 2);
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const plain = document.createElement("a");
    plain.download = link.download.replace(/\.gz$/, "");
    plain.href = URL.createObjectURL(new Blob([await new Response(stream).blob()], { type: "text/csv" }));
    plain.click();
    setTimeout(() => URL.revokeObjectURL(plain.href), 1000);
  }

  document.addEventListener("click", (event) => {
    const named = event.target.closest("a[href^='#data-'], a[id^='data-']");
    const link = named && document.getElementById(named.id || named.hash.slice(1));
    if (!link || !("DecompressionStream" in window)) return;
    event.preventDefault();
    save(link);
  });

  main();
})();
