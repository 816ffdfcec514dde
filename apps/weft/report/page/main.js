/* main: the sections in their order. */

function heading() {
  const about = (data.is_run ? "Run " : "Plan ") + data.source;
  document.title = about + " – Weft";
  document.getElementById("title").textContent = about;
  document.getElementById("subtitle").textContent = [meshText, data.is_going ? "still going" : "", "made " + data.made].filter(Boolean).join(" · ");
  document.getElementById("footer").append(el("p", {class: "quiet"}, "Made by weft report, version " + data.weft + "."));
}

/* Its height changes whenever something is opened or told, which is no reason to draw anything again. */
let mainWidth = 0;

function onResize([entry]) {
  if (entry.contentRect.width === mainWidth) return;
  mainWidth = entry.contentRect.width;
  redrawSoon();
}

function start() {
  heading();
  [summarySection, adviceSection, timelineSection, timeSection, memorySection, meshSection, trafficSection, curvesSection, stepsSection].forEach(make => make());
  redrawAll();
  new ResizeObserver(onResize).observe(document.getElementById("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawSoon);
  matchMedia("print").addEventListener("change", redrawAll);
  window.addEventListener("beforeprint", redrawAll);
  window.addEventListener("afterprint", redrawAll);
  if (checks)
    document.body.append(el("pre", {id: "check", hidden: true}, JSON.stringify(checkAll())));
}

start();
