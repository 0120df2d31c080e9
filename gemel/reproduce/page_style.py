"""The style of a report's page: light and dark, wide and narrow, on a screen and on paper."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --panel: #f6f7f8; --ink: #24292f; --muted: #68707a; --rule: #dfe3e7;
  --link: #00609a; --above: #00609a; --below: #a84300; --blue: #0072b2; --orange: #d55e00;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #15181c; --panel: #1d2126; --ink: #e4e7ea; --muted: #98a1ab; --rule: #32383f;
    --link: #6cb8ea; --above: #6cb8ea; --below: #f0995c; --blue: #4fa8de; --orange: #f08a3c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
p, dl, ul { max-width: 44rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 3rem 0 .3rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
a { color: var(--link); }
code { font: .85em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.lead { color: var(--muted); margin-top: 0; }
.protocol, figcaption, details, .notes { color: var(--muted); font-size: .88rem; }
.notes { margin: .7rem 0 0; padding-left: 1.4rem; max-width: 44rem; }
.protocol { margin: .7rem 0 0; }
.scroll { overflow-x: auto; margin-top: .8rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
table.stacked { width: 100%; }
table.beside thead th:first-child { width: 22rem; }
th, td { padding: .45rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { font-weight: 600; font-size: .82rem; border-bottom-color: var(--muted); white-space: nowrap; }
tr.whose th { color: var(--muted); font-weight: 400; }
tr.spanned th { text-align: center; border-bottom: 0; padding-bottom: 0; }
sup { font-weight: 400; font-size: .7em; margin-left: .2em; color: var(--muted); }
.number { text-align: right; white-space: nowrap; }
tbody th { font-weight: 600; min-width: 10rem; }
.figures tbody th, .figures thead th:first-child { position: sticky; left: 0; background: var(--ground); }
.aside { display: block; font-weight: 400; font-size: .8rem; line-height: 1.4; color: var(--muted); }
.ours { font-weight: 600; }
.stacked td > span { display: block; }
.stacked .paper, .stacked .difference { font-size: .78rem; line-height: 1.4; }
.paper { color: var(--muted); }
.difference { color: var(--muted); }
.difference.above { color: var(--above); }
.difference.below { color: var(--below); }
tr.missing th, tr.missing .ours, tr.missing .paper { color: var(--muted); font-weight: 400; }
.spoken {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
figure { margin: 1.4rem 0 2.4rem; max-width: 42rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg * { stroke-linejoin: round; }
figcaption { margin-top: .6rem; }
figcaption strong { color: var(--ink); }
details { margin-top: .7rem; }
summary { cursor: pointer; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .3rem 1.2rem; }
dl { font-size: .92rem; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  main { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.5rem; }
  table { font-size: .8rem; }
  th, td { padding: .4rem .25rem; }
  table:not(.figures) thead th { white-space: normal; }
  tbody th { min-width: 6rem; max-width: 6.8rem; overflow-wrap: anywhere; }
  table.beside thead th:first-child { width: auto; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .6rem; }
}
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  table { font-size: 8.5pt; }
  h2, h3 { break-after: avoid; }
  tr, figure { break-inside: avoid; }
  .figures tbody th, .figures thead th:first-child { position: static; }
  details { display: none; }
}
""".strip()
