// Why did this job wait? The same facts and words as gridsim/report/explain.py, from the columns of the Gantt chart.
// Times are ticks of the chart inside, seconds in what is answered. One pass over the jobs a question, and a sort of
// those that held cores meanwhile.
const gridsimWhy = (() => {
  "use strict";

  const SHOWN = 5; // other jobs that are told one by one

  // ---- words: as gridsim/report/words.py writes numbers -------------------------------------------------------------

  // So many decimals; ties go to the even digit, as in Python, where toFixed rounds them up.
  function fixed(value, digits) {
    const text = value.toFixed(digits);
    const tie = /[13579]$/.test(text) && /^50*$/.test(value.toFixed(digits + 25).slice(-25));
    return tie ? (Number(text) - 10 ** -digits).toFixed(digits) : text;
  }

  // Three digits, without zeros at the end.
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

  // ---- facts --------------------------------------------------------------------------------------------------------

  // Name of a user, or the number; empty where the log does not say.
  function userOf(data, row) {
    const user = data.user ? data.user[row] : -1;
    return user < 0 ? "" : data.names[user] || String(user);
  }

  // Name of an account or partition; empty where the log does not say, or has numbers only.
  function placeOf(data, label, row) {
    const place = data.places[label], value = place ? place.values[row] : -1;
    return value < 0 ? "" : place.names[value] || String(value);
  }

  // Rows of the largest weights, those without any left out.
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

  // Stretches of [submit, until] with enough free cores for a job.
  function roomFor(data, one, row, submit, until) {
    const rows = [];
    for (let i = 0; i < data.jobs; i++) {
      const end = one.start[i] + one.held[i];
      if (i !== row && one.start[i] >= 0 && end > submit && one.start[i] <= until && one.held[i] > 0) rows.push(i);
    }
    const keys = new Float64Array(2 * rows.length); // instant, place and whether it is an end, in one number
    rows.forEach((i, k) => {
      keys[2 * k] = Math.max(one.start[i], submit) * 2097152 + 2 * k;
      keys[2 * k + 1] = (one.start[i] + one.held[i]) * 2097152 + 2 * k + 1;
    });
    keys.sort();
    const room = [];
    let at = submit, free = data.cores;
    const until_ = (time) => {
      const mark = Math.min(time, until);
      if (mark > at && free >= one.width[row]) room.push([at, mark]);
      at = mark;
    };
    for (const key of keys) {
      until_(Math.floor(key / 2097152));
      const place = key % 2097152, width = one.width[rows[place >> 1]];
      free += place & 1 ? width : -width;
    }
    until_(until);
    return room;
  }

  // How long each job stood first, in order of arrival, while there was room for the one behind.
  function standing(data, one, row, submit, room) {
    const ticks = new Float64Array(data.jobs);
    let at = -Infinity, k = 0;
    for (let p = 0; p < one.placeOf(row); p++) {
      const i = one.order ? one.order[p] : p, until = one.start[i];
      if (until <= submit || until <= at) continue;
      while (k < room.length && room[k][1] <= at) k++;
      for (let j = k; j < room.length && room[j][0] < until; j++) ticks[i] += Math.min(room[j][1], until) - Math.max(room[j][0], at);
      at = until;
    }
    return ticks;
  }

  function explain(data, one, row) {
    const { tick } = data;
    const submit = one.submit[row], ran = one.start[row] >= 0, until = ran ? one.start[row] : submit;
    const held = new Float64Array(data.jobs), passing = new Float64Array(data.jobs), freeing = new Float64Array(data.jobs);
    let total = 0, ahead = 0, aheadWork = 0, passed = 0, passedWork = 0, free = data.cores;
    const users = new Map();
    for (let i = 0; i < data.jobs; i++) {
      const start = one.start[i], end = start + one.held[i];
      if (start < 0 || i === row) continue;
      const inside = Math.min(end, until) - Math.max(start, submit);
      if (inside > 0) total += held[i] = one.width[i] * inside;
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
    const room = roomFor(data, one, row, submit, until);
    const enough = room.reduce((sum, [from, to]) => sum + to - from, 0);
    const first = standing(data, one, row, submit, room);
    const seconds = (ticks) => data.origin + ticks * tick;
    const others = (weight, share, all) => largest(weight).map((i) => ({
      job: data.job[i], user: userOf(data, i), cores: one.width[i], start: seconds(one.start[i]),
      end: seconds(one.start[i] + one.held[i]), share: all ? share[i] / all : 0,
    }));
    return {
      job: data.job[row], user: userOf(data, row), account: placeOf(data, "account", row), partition: placeOf(data, "partition", row),
      cores: one.width[row], status: one.status(row), machine: data.cores, free,
      submit: seconds(submit), start: ran ? seconds(until) : NaN, end: ran ? seconds(until + one.held[row]) : NaN,
      estimate: (data.estimate || data.runtime)[row] * tick, wait: ran ? (until - submit) * tick : NaN,
      short: (until - submit - enough) * tick, enough: enough * tick,
      ahead, ahead_work: aheadWork * tick, passed, passed_work: passedWork * tick,
      holders: others(held, held, total), passing: others(passing, held, total),
      freeing: others(freeing, held, total), first: others(first, first, enough),
      passers: [...users].sort((a, b) => b[1] - a[1]),
    };
  }

  // Whether no job that the chart leaves out held cores or waited while this one did.
  function complete(data, one, row) {
    const [from, to] = one.complete;
    return (from === null || one.submit[row] >= from) && (to === null || Math.max(one.start[row], one.submit[row]) <= to);
  }

  // ---- the same in words --------------------------------------------------------------------------------------------

  const short = (one) => `job ${one.job}${one.user ? ` of user ${one.user}` : ""}`;

  function sentences(found, label) {
    const of = found.user ? ` of user ${found.user}` : "";
    const places = ["account", "partition"].filter((label) => found[label]).map((label) => `${label} ${found[label]}`);
    const asked = `Job ${found.job}${of}${places.length ? ` (${places.join(", ")})` : ""} asked for ${cores(found.cores)} of ${number(found.machine)} for ${duration(found.estimate)}`;
    if (Number.isNaN(found.start)) return [`${asked}, and did not run under ${label} (${found.status}).`];
    if (found.wait <= 0) return [`${asked}, and started at once under ${label}: ${are(found.free)} free.`];
    const told = [`${asked}, and waited ${duration(found.wait)} under ${label}.`, ...roomTold(found), queueTold(found)];
    if (found.holders.length) {
      const most = found.holders.map((one) => `${short(one)} (${cores(one.cores)}, ${percent(one.share)})`);
      told.push(`Most of the machine was held meanwhile by ${listed(most)}.`);
    }
    if (found.freeing.length) told.push(`It started when ${listed(found.freeing.map(short))} ended.`);
    return told;
  }

  function roomTold(found) {
    const when = `When it came, ${are(found.free)} free`;
    if (!(found.enough > 0)) return [`${when}; until it started there was never room for it.`];
    const kept = "there was room for it, and the policy kept that for others.";
    const told = found.short > 0
      ? [`${when}. For ${duration(found.short)} there was too little room for it; for ${duration(found.enough)} ${kept}`]
      : [`${when}; all the time ${kept}`];
    if (found.first.length) {
      const [one] = found.first;
      told.push(`For ${percent(one.share)} of that time ${short(one)}, which asked for ${cores(one.cores)}, stood first.`);
    }
    return told;
  }

  function queueTold(found) {
    const many = found.ahead > 1 ? `${number(found.ahead)} jobs` : found.ahead ? "One job" : "No job";
    const told = `${many} stood before it${found.ahead ? ` (${work(found.ahead_work)})` : ""}`;
    if (!found.passed) return `${told}; nobody who came later started earlier.`;
    const later = found.passed === 1 ? "one job that came later started earlier" : `${number(found.passed)} jobs that came later started earlier`;
    const most = found.passing.length ? `, most of it ${short(found.passing[0])}` : "";
    const whose = found.passed > 1 && found.passers.length ? ` ${whoseTold(found)}` : "";
    return `${told}; ${later} (${work(found.passed_work)}${most}).${whose}`;
  }

  function whoseTold(found) {
    const first = found.passers.slice(0, SHOWN);
    const shown = first.map(([user, count]) => `${number(count)} of ${user === found.user ? "the same user" : `user ${user}`}`);
    const rest = first.reduce((left, [, count]) => left - count, found.passed);
    return `They are ${listed(rest ? [...shown, `${number(rest)} of others`] : shown)}.`;
  }

  return { explain, complete, sentences, userOf, placeOf, words: { duration, number, percent, three } };
})();
