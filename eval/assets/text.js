// A page of text, tables and figures: its tables are sorted by a click on a heading.
"use strict";
(() => {
  document.querySelectorAll("table.sortable").forEach(goodput.sortable);
  goodput.root.classList.add("interactive");
  goodput.root.dataset.ready = "true";
})();
