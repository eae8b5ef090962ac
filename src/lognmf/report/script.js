"use strict";

// Light or dark: the system's choice until the reader makes one, which is kept where the browser allows it.
{
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const store = (act) => { try { return act(localStorage); } catch { return null; } };
  const kept = store((s) => s.getItem("lognmf-theme"));
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => { button.textContent = dark() ? "☀ Light" : "☾ Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    store((s) => s.setItem("lognmf-theme", root.dataset.theme));
    show();
  });
  system.addEventListener("change", show);
  show();
  button.hidden = false;
}

// Tables sort by a column: its best numbers first, then the other way round, then as they were.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const numbers = (column) => original.some((row) => row.cells[column].dataset.sort !== undefined);
  const compare = (column, sign) => (a, b) => {
    const x = a.cells[column], y = b.cells[column];
    if (numbers(column)) {
      const known = [x, y].map((cell) => cell.dataset.sort !== undefined);
      if (!known[0] || !known[1]) return known[1] - known[0]; // what is not known comes last in either direction
      return sign * (Number(x.dataset.sort) - Number(y.dataset.sort));
    }
    const name = (cell) => (cell.tagName === "TH" ? cell.firstElementChild : cell).textContent; // without its best
    return sign * name(x).localeCompare(name(y), undefined, { numeric: true });
  };
  const sort = (column) => {
    const head = heads[column], now = head.getAttribute("aria-sort");
    const first = numbers(column) ? head.dataset.first : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const next = now === "none" ? first : now === first ? second : "none";
    for (const other of heads) other.setAttribute("aria-sort", other === head ? next : "none");
    const rows = [...original];
    if (next !== "none") rows.sort(compare(column, next === "ascending" ? 1 : -1));
    body.append(...rows);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    const title = document.createElement("span"); // its words break between each other only
    title.append(...(head.textContent ? head.childNodes : ["name"]));
    button.append(title);
    button.addEventListener("click", () => sort(column));
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
  });
}

// What does not fit scrolls in its box: arrows at its edges tell, and Tab reaches it.
for (const frame of document.querySelectorAll(".frame")) {
  const box = frame.firstElementChild, first = box.querySelector("thead th");
  const look = () => {
    const across = box.scrollWidth - box.clientWidth, down = box.scrollHeight - box.clientHeight;
    frame.classList.toggle("left", box.scrollLeft > 1);
    frame.classList.toggle("right", across - box.scrollLeft > 1);
    frame.classList.toggle("below", down - box.scrollTop > 1);
    if (first) frame.style.setProperty("--first", `${first.offsetWidth}px`);
    if (across > 1 || down > 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
}

// Notes of cells, beside the pointer's cell or the focused one.
{
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the cell names its note already
  document.body.append(tip);
  const show = (event) => {
    const cell = event.target.closest?.("td[data-note]");
    tip.hidden = !cell;
    if (!cell) return;
    const head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
    tip.textContent = `${cell.parentNode.cells[0].firstElementChild.textContent}, ${head.textContent}\n${cell.dataset.note}`;
    const place = cell.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const below = place.bottom + 6 + size.height <= innerHeight;
    tip.style.top = `${below ? place.bottom + 6 : Math.max(4, place.top - size.height - 6)}px`;
    tip.style.left = `${Math.max(4, Math.min(place.left, innerWidth - size.width - 8))}px`;
  };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("mouseover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", hide, { capture: true, passive: true });
}

// Notes are printed too.
{
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of opened) details.open = false; });
}

// The contents mark the part that is being read.
{
  const nav = document.querySelector("nav");
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const places = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  let waiting = false;
  const mark = () => {
    waiting = false;
    const passed = places.filter((place) => place.getBoundingClientRect().top < innerHeight / 3);
    const current = passed.at(-1) ?? places[0];
    for (const [id, a] of links) {
      if (!current || id !== current.id) a.removeAttribute("aria-current");
      else {
        a.setAttribute("aria-current", "true");
        const box = nav.getBoundingClientRect(), line = a.getBoundingClientRect(); // keep it in sight, and only it
        nav.scrollTop += Math.min(0, line.top - box.top - 40) + Math.max(0, line.bottom - box.bottom + 40);
      }
    }
  };
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(mark);
    waiting = true;
  }, { passive: true });
  mark();
}
