/* advice: what would help, the largest gain first: what to change, what that spares, why, and the command. */

function shareText(share) {
  return share == null ? "–" : (100 * share).toFixed(1) + " %";
}

function adviceRow(one) {
  return el("tr", {}, el("th", {scope: "row", class: "wide"}, one.what || ""),
    el("td", {class: "number"}, one.gain_seconds == null ? "–" : secondsText(one.gain_seconds)),
    el("td", {class: "number"}, shareText(one.gain_share)),
    el("td", {}, one.of || ""), el("td", {class: "wide"}, one.reason || ""),
    el("td", {class: "wide"}, one.command ? el("code", {}, one.command) : ""));
}

function adviceSection() {
  if (!data.advice) return;
  const heads = [["change", false], ["spares", true], ["share", true], ["of a", false], ["reason", false], ["command", false]];
  section("advice", "Advice", data.advice.length === 0 ?
    el("p", {}, "Nothing is known that would spare 2 % or more.") :
    el("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Advice"}, el("table", {id: "advice-table"},
      el("caption", {class: "quiet"}, "What would help, the largest gain first"),
      el("thead", {}, el("tr", {}, heads.map(([head, isNumber]) => el("th", {scope: "col", class: isNumber ? "number" : false}, head)))),
      el("tbody", {}, data.advice.map(adviceRow)))));
}
