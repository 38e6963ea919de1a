// Attributes that the theme does not set: levels of the captions in the side bar, names of both side bars,
// and a stop of the tab key at code that scrolls.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("p.caption[role=heading]").forEach((it) => it.setAttribute("aria-level", "2"));
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
  const mark = () => {
    document.querySelectorAll("div.highlight pre, div.table-wrapper").forEach((it) => {
      if (it.scrollWidth > it.clientWidth) it.tabIndex = 0;
    });
  };
  mark();
  window.addEventListener("resize", mark);
});
