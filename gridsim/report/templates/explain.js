// Explanation of the wait of a job, with the facts of gridsim/questions/explain.py and the text of
// gridsim/report/explain_text.py, from the columns of the Gantt chart. Times are ticks of the chart; results are in
// seconds. Each question takes one loop over the jobs, and a sort of those that ran while the job waited.
const gridsimWhy = (() => {
  "use strict";

  const SHOWN = 5; // largest number of other jobs named
  const LACKING = ["Resources", "ReqNodeNotAvail", "Reservation"]; // reasons for a lack of nodes
  const WHOLE = ["machine", "pooled"];
  const STOPPED = [["other jobs", "stopped for other jobs"], ["absent nodes", "interrupted by absent nodes"], ["its own save", "ended by a save before the walltime"], ["suspension", "suspended for other jobs"]];
  const MEANING = {
    Priority: "jobs of higher priority were waiting",
    Resources: "eligible nodes had too few free resources",
    ReqNodeNotAvail: "nodes were unavailable: reserved, or kept for jobs of other partitions",
    Reservation: "its reservation had not begun",
    BeginTime: "its earliest begin time was not reached",
    Dependency: "a job that it depends on had not ended",
    Licenses: "too few licences were free",
    JobArrayTaskLimit: "as many tasks of its array ran as it permits",
  };

  // ---- numbers: formatted as in gridsim/number_formatting.py -------------------------------------------------------------

  // Rounds ties to the even digit, as Python does; toFixed rounds them up.
  function fixed(value, digits) {
    const text = value.toFixed(digits);
    const tie = /[13579]$/.test(text) && /^50*$/.test(value.toFixed(digits + 25).slice(-25));
    return tie ? (Number(text) - 10 ** -digits).toFixed(digits) : text;
  }

  // Three significant digits without trailing zeros.
  function three(value) {
    if (!value) return "0";
    const exponent = Number(value.toExponential(2).split("e")[1]);
    return String(Number(fixed(value, Math.max(0, 2 - exponent))));
  }

  const whole = (value) => Number(fixed(value, 0));
  const number = (value) => fixed(value, 0).replace(/\B(?=(\d{3})+$)/g, ",");
  const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];

  function duration(value) {
    if (value < 59.5) return `${three(value)} s`;
    for (const [size, name, small, smallName] of UNITS) {
      const parts = whole(value / small) * small;
      if (parts < size) continue;
      const large = Math.floor(parts / size), rest = (parts % size) / small;
      return `${large} ${name}${rest && large < 100 ? ` ${rest} ${smallName}` : ""}`;
    }
    return `${fixed(value, 0)} s`;
  }

  function percent(share) {
    const value = 100 * share;
    const digits = value >= 9.95 || Math.abs(value - whole(value)) < 1e-9 ? 0 : value >= 0.95 ? 1 : 2;
    return `${fixed(value, digits)} %`;
  }

  const listed = (parts) => (parts.length === 1 ? parts[0] : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);
  const cores = (count) => (count === 1 ? "1 core" : `${number(count)} cores`);
  const are = (count) => (count === 1 ? "1 core was" : `${number(count)} cores were`);
  const work = (seconds) => `${seconds / 3600 >= 100 ? number(seconds / 3600) : three(seconds / 3600)} core-hours`;

  // ---- ids of jobs: as in gridsim/model/job_id.py --------------------------------------------------------------

  const ABSENT = -1, SEVERAL = -2;
  const EXPECTED = "expected a job as sacct names it: its number (387), a task of an array (700018_2) or a part of a heterogeneous job (700020+1); a step such as .batch may follow";
  const ID = /^([0-9]{1,17})(?:_(?:([0-9]{1,17})|(\*|\[[^\]]*\]?\+?)))?(?:\+([0-9]{1,9}))?(?:\..+)?$/;

  function readId(text) {
    const element = /^([0-9]{1,17})\[([0-9]{1,17})\](?:\..+)?$/.exec(text), found = ID.exec(text);
    if (element) return { number: Number(element[1]), task: Number(element[2]), part: ABSENT };
    if (!found) return null;
    const one = /^\[([0-9]{1,17})\]$/.exec(found[3] || "");
    const task = one ? Number(one[1]) : found[3] ? SEVERAL : found[2] ? Number(found[2]) : ABSENT;
    return { number: Number(found[1]), task, part: found[4] ? Number(found[4]) : ABSENT };
  }

  const shownId = ({ number, task, part }) => `${number}${task === ABSENT ? "" : task === SEVERAL ? "_*" : `_${task}`}${part === ABSENT ? "" : `+${part}`}`;

  function idAt(data, row) {
    const task = data.task ? data.task[row] : ABSENT, part = data.part ? data.part[row] : ABSENT;
    return { number: task === ABSENT && part === ABSENT ? data.job[row] : data.group[row], task, part };
  }

  const idOf = (data, row) => shownId(idAt(data, row));
  const rowsWhere = (column, fits) => column.reduce((rows, value, i) => (fits(value, i) ? (rows.push(i), rows) : rows), []);

  function rowsOf(data, { number, task, part }) {
    if (task === ABSENT && part === ABSENT) {
      const row = data.job.indexOf(number); // for tasks of one job, the first
      return row >= 0 ? [row] : data.group ? rowsWhere(data.group, (value) => value === number) : [];
    }
    return data.group ? rowsWhere(data.group, (value, i) => {
      const own = idAt(data, i);
      if (value !== number || (task !== SEVERAL && own.task !== task)) return false;
      return (part === ABSENT && task !== ABSENT) || own.part === part;
    }) : [];
  }

  // Row of the job with the given id, or the reason why there is none.
  function rowOf(data, asked) {
    const text = String(asked).trim(), wanted = readId(text);
    if (!wanted) {
      const digits = text.match(/[0-9]{1,17}/g) || [];
      const near = ["_", "+"].map((join) => readId(digits.join(join))).find((one) => one && rowsOf(data, one).length === 1);
      return { row: -1, unread: true, why: `'${text}' is not a job; ${EXPECTED}${near ? `; did you mean ${shownId(near)}?` : ""}` };
    }
    const rows = rowsOf(data, wanted);
    if (rows.length === 1) return { row: rows[0] };
    return { row: -1, why: rows.length ? several(data, wanted, rows) : missing(data, wanted) };
  }

  function several(data, wanted, rows) {
    let shown = rows.map((row) => idOf(data, row));
    if (new Set(shown).size < shown.length) shown = rows.map((row) => String(data.job[row]));
    const few = shown.slice(0, 3).join(", ") + (shown.length > 3 ? `, … ${shown.at(-1)}` : "");
    return `${shownId(wanted)} is ${number(rows.length)} jobs; name one of them: ${few}`;
  }

  const nearest = (values, distance) => values.reduce((best, value) => (distance(value) < distance(best) ? value : best));

  function missing(data, wanted) {
    const there = `there is no job ${shownId(wanted)}`;
    if (!data.jobs) return `${there}; there is none at all`;
    const plain = wanted.task === ABSENT && wanted.part === ABSENT;
    if (plain || !data.group) {
      const least = data.job.reduce((a, b) => Math.min(a, b)), most = data.job.reduce((a, b) => Math.max(a, b));
      const near = nearest(data.job, (value) => Math.abs(value - wanted.number));
      const span = `numbers go from ${least} to ${most}, and the nearest is ${near}`;
      return plain ? `${there}; ${span}` : `${there}: the jobs here have numbers alone, and no arrays or parts; expected the job's own (JobIDRaw of sacct); ${span}`;
    }
    const inside = rowsWhere(data.group, (value) => value === wanted.number), alike = inside.map((row) => idAt(data, row));
    const unlisted = inside.filter((row) => idAt(data, row).task === SEVERAL);
    if (unlisted.length === 1) return `${there}; its tasks are one line of the log: ${idOf(data, unlisted[0])}`;
    if (unlisted.length) return several(data, { ...wanted, task: SEVERAL, part: ABSENT }, unlisted);
    if (!alike.length) {
      const groups = [...data.group].filter((_, i) => idAt(data, i).task !== ABSENT || idAt(data, i).part !== ABSENT);
      const near = nearest(groups, (value) => Math.abs(value - wanted.number));
      return `${there}; no array or group of parts has the number ${wanted.number}; the nearest is ${near}`;
    }
    const near = shownId(nearest(alike, (one) => Math.abs(one.task - wanted.task) + Math.abs(one.part - wanted.part)));
    const order = [...alike].sort((a, b) => a.number - b.number || a.task - b.task || a.part - b.part).map(shownId);
    const span = order.length > 1 ? `${order[0]} to ${order.at(-1)}, and the nearest is ${near}` : order[0];
    return `${there}; there is ${span}`;
  }

  // ---- facts --------------------------------------------------------------------------------------------------------

  // Name of a user, or the number; empty if unknown.
  function userOf(data, row) {
    const user = data.user ? data.user[row] : -1;
    return user < 0 ? "" : data.names[user] || String(user);
  }

  // Name of an account or partition; empty if unknown.
  function placeOf(data, label, row) {
    const place = data.places[label], value = place ? place.values[row] : -1;
    return value < 0 ? "" : place.names[value] || String(value);
  }

  // Offset of the log's time zone from UTC at a second of its clock.
  const aheadAt = (dates, second) => dates.ahead.reduce((ahead, [from, offset]) => (from <= second ? offset : ahead), dates.ahead[0][1]);

  // A second of the log's clock as a date in its zone; empty if the log has no dates.
  function dateOf({ dates }, second) {
    if (!dates) return "";
    const begun = Math.floor(second + 1e-6), wall = Math.floor(dates.epoch + begun + aheadAt(dates, begun));
    const [day, time] = new Date(1000 * wall).toISOString().slice(0, 19).split("T");
    return `${day} ${time.endsWith(":00") ? time.slice(0, 5) : time}`;
  }

  // Rows of the largest weights above 0.
  function largest(weight) {
    const rows = [];
    for (let i = 0; i < weight.length; i++) {
      if (!(weight[i] > 0) || (rows.length === SHOWN && weight[i] <= weight[rows[SHOWN - 1]])) continue;
      let k = rows.length;
      while (k && weight[i] > weight[rows[k - 1]]) k--;
      rows.splice(k, 0, i);
      if (rows.length > SHOWN) rows.pop();
    }
    return rows;
  }

  // Eligible part of the machine of each job, and reasons of its scheduler: as in gridsim/questions/partition_view.py.
  function partsOf(packed, { pool, eligible, free, reported, word, spans, lacked }) {
    let row = 0;
    const byRow = new Map();
    (reported || []).forEach((step, k) => {
      row += step;
      if (!byRow.has(row)) byRow.set(row, []);
      byRow.get(row).push([packed.words[word[k]], spans[k]]);
    });
    const shortOf = lacked ? (i) => packed.lacks[lacked[i]] : null;
    return { pool, eligible, free, byRow, shortOf, pooled: packed.pooled, clusters: packed.parts || [], refused: new Map(packed.refused || []) };
  }

  // Stopped runs of each job before its last one, in order of time: start, end, and why it was stopped.
  function runsOf({ cut, began, lasted, stopped }) {
    let row = 0;
    const runs = new Map();
    (cut || []).forEach((step, k) => {
      row += step;
      if (!runs.has(row)) runs.set(row, []);
      runs.get(row).push([began[k], began[k] + lasted[k], stopped ? stopped[k] : 0]);
    });
    return { runs };
  }

  const lostOf = (one, row) => (one.runs.get(row) || []).reduce((sum, [from, to]) => sum + to - from, 0);
  const stoppedBy = (one, row) => STOPPED.map(([why], k) => [why, (one.runs.get(row) || []).filter((run) => run[2] === k).length]).filter(([, count]) => count);
  // Ticks from submission to start in which no piece of a chain and no stopped run held cores.
  const waited = (one, row) => one.wait[row] - (one.earlier ? one.earlier[row] : 0) - lostOf(one, row);

  const among = (one, row) => (one.pool && one.pool[row] >= 0 ? (i) => one.pool[i] === one.pool[row] : () => true);
  const sizeOf = (data, one, row) => (one.clusters.length && one.pool[row] >= 0 ? one.clusters[one.pool[row]][1] : data.cores);

  function reasonsOf(one, row) {
    const total = new Map();
    for (const [word, held] of one.byRow.get(row) || []) if (held > 0) total.set(word, (total.get(word) || 0) + held);
    return [...total].sort((a, b) => b[1] - a[1]);
  }

  function scopeOf(one, row) {
    if (!one.pool) return one.pooled ? "pooled" : "machine";
    if (!one.clusters.length) return "nodes";
    return one.pool[row] >= 0 ? one.clusters[one.pool[row]][0] : "machine";
  }

  // Intervals of [submit, until] with enough free cores for a job.
  function freeTimesFor(data, one, row, submit, until) {
    const rows = [], there = among(one, row);
    for (let i = 0; i < data.jobs; i++) {
      const end = one.start[i] + one.held[i];
      if (i !== row && there(i) && one.start[i] >= 0 && end > submit && one.start[i] <= until && one.held[i] > 0) rows.push(i);
    }
    const keys = new Float64Array(2 * rows.length); // instant, place and whether it is an end, in one number
    rows.forEach((i, k) => {
      keys[2 * k] = Math.max(one.start[i], submit) * 2097152 + 2 * k;
      keys[2 * k + 1] = (one.start[i] + one.held[i]) * 2097152 + 2 * k + 1;
    });
    keys.sort();
    const freeTimes = [];
    let at = submit, free = sizeOf(data, one, row);
    const until_ = (time) => {
      const mark = Math.min(time, until);
      if (mark > at && free >= one.width[row]) freeTimes.push([at, mark]);
      at = mark;
    };
    for (const key of keys) {
      until_(Math.floor(key / 2097152));
      const place = key % 2097152, width = one.width[rows[place >> 1]];
      free += place & 1 ? width : -width;
    }
    until_(until);
    for (const [from, to] of one.runs.get(row) || []) // the job itself held cores
      freeTimes.splice(0, freeTimes.length, ...freeTimes.flatMap(([a, b]) => [[a, Math.min(b, from)], [Math.max(a, to), b]]).filter(([a, b]) => b > a));
    return freeTimes;
  }

  // Time for which each job was first in order of arrival, while there were enough free cores for the explained job.
  function standing(data, one, row, submit, freeTimes) {
    const ticks = new Float64Array(data.jobs), there = among(one, row);
    let at = -Infinity, k = 0;
    for (let p = 0; p < one.placeOf(row); p++) {
      const i = one.order ? one.order[p] : p, until = one.start[i];
      if (until <= submit || until <= at || !there(i)) continue;
      while (k < freeTimes.length && freeTimes[k][1] <= at) k++;
      for (let j = k; j < freeTimes.length && freeTimes[j][0] < until; j++) ticks[i] += Math.min(freeTimes[j][1], until) - Math.max(freeTimes[j][0], at);
      at = until;
    }
    return ticks;
  }

  function explain(data, one, row) {
    const { tick } = data;
    const submit = one.submit[row], ran = one.start[row] >= 0, until = ran ? one.start[row] : submit, earlier = one.earlier ? one.earlier[row] : 0, lost = ran ? lostOf(one, row) : 0;
    const held = new Float64Array(data.jobs), passing = new Float64Array(data.jobs), freeing = new Float64Array(data.jobs), beyond = new Float64Array(data.jobs);
    let total = 0, ahead = 0, aheadWork = 0, passed = 0, passedWork = 0, free = sizeOf(data, one, row);
    const users = new Map(), there = among(one, row);
    for (let i = 0; i < data.jobs; i++) {
      const start = one.start[i], end = start + one.held[i];
      if (start < 0 || i === row || !there(i)) continue;
      const inside = Math.min(end, until) - Math.max(start, submit);
      if (inside > 0) total += held[i] = one.width[i] * inside;
      if (one.predicted) beyond[i] = Math.max(0, Math.min(end, until) - Math.max(start + one.predicted[i], submit));
      if (start <= submit && end > submit && end > start) free -= one.width[i];
      const sooner = one.placeOf(i) < one.placeOf(row), later = !sooner && start < until;
      if (sooner && start > submit) {
        ahead += 1;
        aheadWork += one.width[i] * one.held[i];
      } else if (later) {
        passed += 1;
        passedWork += one.width[i] * one.held[i];
        passing[i] = held[i];
        const user = userOf(data, i);
        if (user) users.set(user, (users.get(user) || 0) + 1);
      }
      if ((sooner || later) && end === until && until > submit) freeing[i] = one.width[i];
    }
    let freeTimes = freeTimesFor(data, one, row, submit, until), eligible = sizeOf(data, one, row), reasons = [];
    let enough = tick * freeTimes.reduce((sum, [from, to]) => sum + to - from, 0), lacking = tick * (until - submit - lost) - enough;
    if (one.eligible) {
      [eligible, free, reasons, freeTimes] = [one.eligible[row], one.free[row], reasonsOf(one, row), []];
      const sum = (lack) => reasons.reduce((total, [word, held]) => total + (LACKING.includes(word) === lack ? held : 0), 0);
      [lacking, enough] = [sum(true), sum(false)];
    }
    if (one.shortOf) [lacking, enough, freeTimes] = [0, 0, []]; // resources other than cores matter
    const first = standing(data, one, row, submit, freeTimes);
    const seconds = (ticks) => data.origin + ticks * tick;
    const others = (weight, share, all) => largest(weight).map((i) => ({
      job: data.job[i], id: idOf(data, i), user: userOf(data, i), cores: one.width[i], start: seconds(one.start[i]),
      end: seconds(one.start[i] + one.held[i]), share: all ? share[i] / all : 0,
    }));
    return {
      job: data.job[row], id: idOf(data, row), user: userOf(data, row), account: placeOf(data, "account", row), partition: placeOf(data, "partition", row),
      cores: one.width[row], status: one.status(row), machine: data.cores, eligible, free,
      scope: scopeOf(one, row), reasons, refused: one.refused.get(row) || null, short_of: one.shortOf ? one.shortOf(row) : "",
      submitted: dateOf(data, seconds(submit)), started: ran ? dateOf(data, seconds(until)) : "",
      submit: seconds(submit), start: ran ? seconds(until) : NaN, end: ran ? seconds(until + one.held[row]) : NaN,
      estimate: (data.estimate || data.runtime)[row] * tick, wait: ran ? waited(one, row) * tick : NaN,
      pieces: one.chain ? one.chain[row] : 1, earlier: earlier * tick, cut: ran ? (one.runs.get(row) || []).length : 0, lost: lost * tick, stopped_by: ran ? stoppedBy(one, row) : [],
      short: lacking, enough,
      ahead, ahead_work: aheadWork * tick, passed, passed_work: passedWork * tick,
      holders: others(held, held, total), passing: others(passing, held, total),
      freeing: others(freeing, held, total), first: others(first, first, enough / tick),
      passers: [...users].sort((a, b) => b[1] - a[1]),
      ...exceeded(one, beyond, others, held, total, tick),
    };
  }

  // Jobs that exceeded their predicted run times; no property if there are none.
  function exceeded(one, beyond, others, held, total, tick) {
    const weight = beyond.map((ticks, i) => ticks * one.width[i]), rows = largest(weight);
    return rows.length ? { exceeded: others(weight, held, total).map((other, k) => ({ ...other, beyond: beyond[rows[k]] * tick })) } : {};
  }

  // Whether the chart has all jobs that held cores or waited while this one waited.
  function complete(data, one, row) {
    const [from, to] = one.complete;
    return (from === null || one.submit[row] >= from) && (to === null || Math.max(one.start[row], one.submit[row]) <= to);
  }

  // ---- sentences --------------------------------------------------------------------------------------------

  const called = (found) => (found.id === String(found.job) ? found.id : `${found.id} (number ${found.job})`);
  const short = (one) => `job ${one.id}${one.user ? ` of user ${one.user}` : ""}`;

  function stoppedText(by) {
    const how = new Map(STOPPED);
    return by.length > 1 ? `(${listed(by.map(([why, count]) => `${number(count)} ${how.get(why)}`))})` : how.get(by[0][0]);
  }

  function sentences(found, label) {
    const of = found.user ? ` of user ${found.user}` : "";
    const places = ["account", "partition"].filter((label) => found[label]).map((label) => `${label} ${found[label]}`);
    const asked = `Job ${called(found)}${of}${places.length ? ` (${places.join(", ")})` : ""} requested ${cores(found.cores)}${ofText(found)} for ${duration(found.estimate)}`;
    if (Number.isNaN(found.start)) return [`${asked}, and did not run under ${label} (${whyNot(found)}).`, ...dateTexts(found)];
    if (found.wait <= 0 && found.pieces + found.cut === 1) return [`${asked}, and started at once under ${label}: ${freeText(found)}.`, ...dateTexts(found)];
    const chain = found.pieces > 1 ? `, summed over the ${number(found.pieces)} pieces of its chain` : "";
    const lost = found.cut ? `, in addition to ${duration(found.lost)} in ${found.cut === 1 ? "1 run" : `${number(found.cut)} runs`} ${stoppedText(found.stopped_by)}` : "";
    const last = found.pieces + found.cut > 1 ? [`Its last ${found.cut ? "run" : "piece"} started ${duration(found.start - found.submit)} after submission; the following sentences cover the time until then.`] : [];
    const texts = [`${asked}, and waited ${duration(found.wait)} under ${label}${chain}${lost}.`, ...dateTexts(found), ...(found.scope === "nodes" ? reasonTexts(found) : capacityTexts(found)), ...last, queueText(found)];
    if (found.holders.length) {
      const most = found.holders.map((one) => `${short(one)} (${cores(one.cores)}, ${percent(one.share)})`);
      const there = WHOLE.includes(found.scope) || found.eligible >= found.machine ? "" : " there";
      texts.push(`While it waited, the ${most.length === 1 ? "job" : "jobs"} with the most core-hours${there} ${most.length === 1 ? "was" : "were"} ${listed(most)}.`);
    }
    if (found.exceeded) texts.push(`While it waited, these jobs exceeded their predicted run times: ${listed(found.exceeded.map((one) => `${short(one)} (${duration(one.beyond)})`))}.`);
    if (found.freeing.length) texts.push(`It started when ${listed(found.freeing.map(short))} ended.`);
    return texts;
  }

  function dateTexts({ submitted, started, wait, pieces, cut }) {
    if (!submitted) return [];
    if (!started) return [`It was submitted at ${submitted}.`];
    if (started === submitted) return [wait <= 0 ? `It was submitted and started at ${submitted}.` : `It was submitted at ${submitted} and started within the same second.`];
    return [`It was submitted at ${submitted} and ${pieces + cut > 1 ? `its last ${cut ? "run" : "piece"} started` : "started"} at ${started}.`];
  }

  function ofText(found) {
    const { scope, eligible, machine } = found, whole = `(the machine has ${number(machine)})`;
    if (scope === "nodes" && eligible >= 0 && eligible < machine) return ` of ${number(eligible)} eligible ${whole}`;
    return scope === "nodes" || WHOLE.includes(scope) ? ` of ${number(machine)}` : ` of ${number(eligible)} in ${scope} ${whole}`;
  }

  function freeText({ scope, free }) {
    if (scope === "nodes") return `${are(free)} free on eligible nodes`;
    if (scope === "pooled") return `${are(free)} free in all partitions, which this policy treats as one pool`;
    return `${are(free)} free${scope === "machine" ? "" : ` in ${scope}`}`;
  }

  function reasonTexts(found) {
    const when = `At its submission, ${freeText(found)}.`;
    const parts = found.reasons.map(([word, held]) =>
      word === "None" ? `${duration(held)} until the next scheduling cycle` : `${duration(held)} ${word} (${MEANING[word] || "a limit of the site"})`);
    return parts.length ? [when, `Reasons for its wait: ${listed(parts)}.`] : [when];
  }

  function whyNot(found) {
    if (found.refused) return `${found.status} because ${refusal(found.refused)}`;
    if (found.status === "rejected" && found.cores > found.machine) return `rejected: needs ${cores(found.cores)}, the machine has ${number(found.machine)}`;
    return found.status;
  }

  function refusal({ requested, most, unit, rule }) {
    if (most === null) return rule.startsWith("nodes of ") ? `no ${rule} can hold ${requested}` : `${requested} is not allowed by ${rule}`;
    const amount = (value) => (unit === "s" ? duration(value) : `${number(value)} ${unit}`), [name, ...whose] = rule.split(" of ");
    if (name === "nodes") return `${amount(requested)} are more than the ${amount(most)} of the ${rule}`;
    return `${amount(requested)} is above ${name} ${amount(most)}${whose.length ? ` of ${whose.join(" of ")}` : ""}`;
  }

  const LACKED = {
    order: "it could have started, but had to wait for its turn",
    several: "several resources were missing: no single one would have let it start",
    features: "only nodes with other features, partitions or GPU types had enough free resources",
    nodes: "only its limits on nodes, or its request for exclusive nodes, prevented the start",
  };

  function capacityTexts(found) {
    const when = `At its submission, ${freeText(found)}`;
    if (found.short_of) return [`${when}; ${LACKED[found.short_of] || `it lacked only ${found.short_of === "gpu" ? "GPUs" : found.short_of}`}.`];
    if (!(found.enough > 0)) return [`${when}; until its start, there were never enough free cores for it.`];
    const kept = "there were enough, but the policy kept them for other jobs.";
    const texts = found.short > 0
      ? [`${when}. For ${duration(found.short)} there were too few free cores for it; for ${duration(found.enough)} ${kept}`]
      : [`${when}; until its start ${kept}`];
    if (found.first.length) {
      const [one] = found.first;
      texts.push(`For ${percent(one.share)} of that time, ${short(one)}, which requested ${cores(one.cores)}, was first in the queue.`);
    }
    return texts;
  }

  function queueText(found) {
    const many = found.ahead > 1 ? `${number(found.ahead)} jobs` : found.ahead ? "One job" : "No job";
    const texts = `${many} ${found.ahead > 1 ? "were" : "was"} ahead of it in the queue${found.ahead ? ` (${work(found.ahead_work)})` : ""}`;
    if (!found.passed) return `${texts}; no later job started first.`;
    const later = found.passed === 1 ? "One later job" : `${number(found.passed)} later jobs`;
    const largest = found.passed > 1 ? "the largest part by " : "";
    const most = found.passing.length ? `, ${largest}${short(found.passing[0])}` : "";
    const whose = found.passed > 1 && found.passers.length ? `: ${whoseText(found)}` : "";
    return `${texts}. ${later} started first (${work(found.passed_work)}${most})${whose}.`;
  }

  function whoseText(found) {
    const first = found.passers.slice(0, SHOWN);
    const shown = first.map(([user, count]) => `${number(count)} of ${user === found.user ? "the same user" : `user ${user}`}`);
    const rest = first.reduce((left, [, count]) => left - count, found.passed);
    return listed(rest ? [...shown, `${number(rest)} ${rest === 1 ? "other" : "others"}`] : shown);
  }

  return { explain, complete, sentences, partsOf, runsOf, waited, aheadAt, userOf, placeOf, idOf, rowOf, words: { duration, number, percent, three } };
})();
