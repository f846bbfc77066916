// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

// style is the same in every drawing. Colours stand twice, for light and for dark;
// nothing is told by colour alone.
const style = `.sandpit-plot{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.sandpit-plot .ground{fill:#fff;stroke:#d8dee4}
.sandpit-plot text{fill:#1f2328;font-size:13px}
.sandpit-plot .title{font-size:18px;font-weight:650;letter-spacing:-.01em}
.sandpit-plot .name{font-size:14px}
.sandpit-plot .strong{font-weight:650}
.sandpit-plot .small{font-size:11.5px}
.sandpit-plot .quiet{fill:#59636e}
.sandpit-plot .warn{fill:#b42318}
.sandpit-plot .over{stroke:#fff;stroke-width:4px;paint-order:stroke}
.sandpit-plot .grid{stroke:#eaeef2}
.sandpit-plot .decade{stroke:#c9d1d9}
.sandpit-plot .axis{stroke:#8c959f}
.sandpit-plot .ours{fill:#cf7a17}
.sandpit-plot .theirs{fill:#a3afbb}
.sandpit-plot .whisker{stroke:#1f2328;stroke-width:1.5;fill:none}
.sandpit-plot .mark{stroke:#1a7f37;stroke-width:1.5;stroke-dasharray:5 4}
.sandpit-plot .marked{fill:#1a7f37}
.sandpit-plot .band{fill:#1a7f37;fill-opacity:.09}
.sandpit-plot .s0,.sandpit-plot .s1,.sandpit-plot .s2,.sandpit-plot .s3{fill:none;stroke-width:2.25;stroke-linejoin:round}
.sandpit-plot .s0{stroke:#cf7a17}
.sandpit-plot .s1{stroke:#0969da;stroke-dasharray:9 4}
.sandpit-plot .s2{stroke:#6e40c9;stroke-dasharray:3 4}
.sandpit-plot .s3{stroke:#0f766e;stroke-dasharray:9 4 2 4}
.sandpit-plot .d0{fill:#cf7a17}
.sandpit-plot .d1{fill:#0969da}
.sandpit-plot .d2{fill:#6e40c9}
.sandpit-plot .d3{fill:#0f766e}
.sandpit-plot text.n0{fill:#9a5a0f}
.sandpit-plot text.n1{fill:#0969da}
.sandpit-plot text.n2{fill:#6e40c9}
.sandpit-plot text.n3{fill:#0f766e}
@media (prefers-color-scheme:dark){
.sandpit-plot .ground{fill:#0d1117;stroke:#30363d}
.sandpit-plot text{fill:#e6edf3}
.sandpit-plot .quiet{fill:#9198a1}
.sandpit-plot .warn{fill:#ff9b93}
.sandpit-plot .over{stroke:#0d1117}
.sandpit-plot .grid{stroke:#1b222b}
.sandpit-plot .decade{stroke:#353d47}
.sandpit-plot .axis{stroke:#6e7681}
.sandpit-plot .ours{fill:#e8a04c}
.sandpit-plot .theirs{fill:#5f6b78}
.sandpit-plot .whisker{stroke:#e6edf3}
.sandpit-plot .mark{stroke:#3fb950}
.sandpit-plot .marked{fill:#3fb950}
.sandpit-plot .band{fill:#3fb950;fill-opacity:.1}
.sandpit-plot .s0{stroke:#e8a04c}
.sandpit-plot .s1{stroke:#58a6ff}
.sandpit-plot .s2{stroke:#bc8cff}
.sandpit-plot .s3{stroke:#4fd1c5}
.sandpit-plot .d0{fill:#e8a04c}
.sandpit-plot .d1{fill:#58a6ff}
.sandpit-plot .d2{fill:#bc8cff}
.sandpit-plot .d3{fill:#4fd1c5}
.sandpit-plot text.n0{fill:#e8a04c}
.sandpit-plot text.n1{fill:#58a6ff}
.sandpit-plot text.n2{fill:#bc8cff}
.sandpit-plot text.n3{fill:#4fd1c5}
}
`

// kinds is how many sorts of lines there are; further ones would look like earlier ones.
const kinds = 4
