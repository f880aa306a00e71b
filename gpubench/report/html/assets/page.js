// What a report does in the browser: unpacks the charts and draws them, says what a mark is, turns dark, saves the run.
// Nothing is fetched, no text is read as HTML, no text is run: Vega's expressions are interpreted.
"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const bytes = (element) => Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const unpacked = (id) => {
    const packed = new Blob([bytes(document.getElementById(id))]).stream();
    return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).text();
  };

  // The page, light or dark: as the system has it until the reader chooses.
  const theme = document.getElementById("theme");
  const mode = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  const told = () => {
    theme.setAttribute("aria-pressed", String(mode() === "dark"));
    root.dispatchEvent(new Event("themechange"));
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = mode() === "dark" ? "light" : "dark";
    told();
  });
  dark.addEventListener("change", told);
  told();

  // The run inside, as a file.
  for (const button of document.querySelectorAll("button[data-run]")) {
    button.addEventListener("click", () => {
      const run = document.querySelectorAll("script.gpubench-run")[Number(button.dataset.run)];
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([bytes(run)], { type: "application/gzip" }));
      link.download = button.dataset.name;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  // A link to what is folded away unfolds it.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let up = target; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    const inner = target.querySelector(":scope > details");
    if (inner) inner.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // What a mark is: names and values, as text.
  const tip = document.getElementById("tip");
  const tooltip = (handler, event, item, value) => {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    tip.replaceChildren();
    if (typeof value === "object") {
      const rows = document.createElement("div");
      for (const [name, words] of Object.entries(value)) {
        const title = document.createElement("b");
        const text = document.createElement("span");
        title.textContent = name;
        text.textContent = String(words);
        rows.append(title, text);
      }
      tip.append(rows);
    } else {
      tip.textContent = String(value);
    }
    const place = tip.getBoundingClientRect();
    const beside = event.clientX + 14;
    const left = beside + place.width > innerWidth ? event.clientX - 14 - place.width : beside;
    const below = event.clientY + 16;
    const top = below + place.height > innerHeight ? event.clientY - 12 - place.height : below;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${Math.max(top, 4)}px`;
  };

  // The charts, one after the other, those at the top first; again where the page turns dark or light; all of them, and
  // light, before the page is printed.
  const nothing = () => Promise.reject(new Error("a report fetches nothing"));
  const recoloured = (part, dark) => {
    if (typeof part === "string") return dark[part] ?? part;
    if (Array.isArray(part)) return part.map((each) => recoloured(each, dark));
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, recoloured(each, dark)]));
  };
  // On a phone names of rows take two fifths of the width, ticks that do not fit are left out, the title of an axis ends
  // where the axis does, legends stand one below the other, under their titles.
  const across = { labelOverlap: true, labelSeparation: 6, titleAnchor: "end", titleAlign: "right" };
  const narrowed = (chart, width) => ({
    ...chart,
    axes: chart.axes?.map((axis) =>
      axis.orient === "bottom"
        ? { ...axis, ...(axis.grid ? {} : across) }
        : { ...axis, labelLimit: Math.min(axis.labelLimit ?? Infinity, 0.42 * width) },
    ),
    legends: chart.legends?.map((legend) => ({ ...legend, titleOrient: "top", labelLimit: width - 60 })),
  });
  const stacked = (config) => ({
    ...config,
    legend: { ...config.legend, layout: { top: { direction: "vertical", margin: 6 } } },
  });
  // A legend has more rows in a narrow frame than it made room for: again, until nothing moves.
  const settle = (view) => {
    const placed = () => [view.width(), ...view.origin()].join();
    for (let turn = 0, before = ""; turn < 6 && before !== placed(); turn += 1) {
      before = placed();
      view.resize().run();
    }
  };
  const drawn = new Map();
  const draw = (holder, drawings, mode) => {
    const narrow = holder.clientWidth < 560;
    const legends = drawings.charts[holder.dataset.chart].vega.legends !== undefined;
    if (drawn.get(holder)?.mode === mode && drawn.get(holder).narrow === narrow) {
      if (narrow || legends) settle(drawn.get(holder).view);
      return;
    }
    drawn.get(holder)?.view.finalize();
    const label = holder.getAttribute("aria-label");
    const { data, ...rest } = drawings.charts[holder.dataset.chart].vega;
    const whole = { ...(mode === "dark" ? recoloured(rest, drawings.dark) : rest), data };
    const chart = narrow ? narrowed(whole, holder.clientWidth) : whole;
    const config = narrow ? stacked(drawings.config[mode]) : drawings.config[mode];
    const view = new vega.View(vega.parse(chart, config, { ast: true }), {
      expr: vega.expressionInterpreter,
      loader: { load: nothing, sanitize: nothing, http: nothing, file: nothing },
      renderer: "svg",
      hover: true,
      tooltip,
    });
    view.initialize(holder).run();
    if (narrow || legends) settle(view);
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", label);
    holder.removeAttribute("aria-roledescription");
    drawn.set(holder, { mode, narrow, view });
  };
  // The figures of a chart as a table: all of them, written out beforehand, would be a quarter of the page.
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const write = (place, { columns, rows }) => {
    const label = place.dataset.caption;
    const table = document.createElement("table");
    table.append(element("caption", label));
    table.createTHead().insertRow().append(...columns.map((name) => element("th", name, { scope: "col" })));
    const body = table.createTBody();
    for (const [first, ...others] of rows) {
      const name = first === "" ? element("td", "") : element("th", first, { scope: "row" });
      body.insertRow().append(name, ...others.map((cell) => element("td", cell)));
    }
    const scroll = element("div", "", { class: "scroll", tabindex: 0, role: "group", "aria-label": label });
    scroll.append(table);
    place.append(scroll);
  };

  const start = async () => {
    const holders = [...document.querySelectorAll(".chart[data-chart]")];
    if (holders.length) {
      const [engine, drawings] = await Promise.all([unpacked("packed-vega"), unpacked("packed-charts").then(JSON.parse)]);
      for (const place of document.querySelectorAll("details[data-figures]")) {
        place.addEventListener("toggle", () => write(place, drawings.charts[place.dataset.figures]), { once: true });
      }
      const script = document.createElement("script");
      script.textContent = engine;
      document.head.append(script);
      const all = async () => {
        for (const holder of holders) {
          draw(holder, drawings, mode());
          await new Promise((free) => setTimeout(free, 0));
        }
        root.dataset.drawn = mode();
      };
      addEventListener("beforeprint", () => holders.forEach((holder) => draw(holder, drawings, "light")));
      addEventListener("afterprint", all);
      root.addEventListener("themechange", all);
      let turned; // a phone was turned, a window made narrow: once that is over
      addEventListener("resize", () => {
        clearTimeout(turned);
        turned = setTimeout(all, 150);
      });
      await all();
    }
    root.dataset.ready = "";
  };
  start().catch((error) => {
    for (const holder of document.querySelectorAll(".chart:not(:has(svg))")) {
      holder.textContent = "This chart could not be drawn here; its rows are in the tables.";
    }
    throw error;
  });
})();
