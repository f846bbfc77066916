// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"strings"
)

// Bars compares how long several take: for each a bar to the p50, with whiskers to the
// p95 and the p99, on a logarithmic axis. Bars of such an axis begin at its edge, which is
// no zero: the drawing says so, and gives every figure and the ratio in numbers.
type Bars struct {
	ID       string // of letters, digits and dashes
	Title    string
	Subtitle string
	Unit     string // of all values: "ms"
	Rows     []Row
	Mark     *Mark
	Against  string   // heads the column of the rows' Against; "": there is none
	Caption  []string // paragraphs: method, machine, date
}

// Row is one of those that are compared. Values that cannot be drawn (0 or less, infinite, not
// a number) are left out.
type Row struct {
	Label   string
	Note    string // below the label, as "200 of 200"
	Weak    bool   // the note is a warning
	Ours    bool   // stands out
	Missing string // why there are no figures; "": there are
	P50     float64
	P95     float64
	P99     float64
	Against string // as "14.2 ×"
}

// Mark is a value that is to be kept.
type Mark struct {
	Value float64
	Label string // as "mark: 4 ms"
}

// Columns of a bar chart, by their edges.
const (
	labelWidth  = 176
	columnWidth = 60
	rowHeight   = 42
)

// SVG draws it.
func (b Bars) SVG() []byte {
	var c canvas
	y := head(&c, b.Title, b.Subtitle)

	columns := []string{"p50", "p95", "p99"}
	if b.Against != "" {
		columns = append(columns, b.Against)
	}
	edge := float64(width - margin - columnWidth*len(columns) - 12)
	values := make([]float64, 0, 3*len(b.Rows)+1)
	for _, r := range b.Rows {
		if r.Missing == "" {
			values = append(values, r.P50, r.P95, r.P99)
		}
	}
	if b.Mark != nil {
		values = append(values, b.Mark.Value)
	}
	low, high := decades(values)
	axis := scale{low: low, high: high, from: margin + labelWidth, to: edge, log: true}

	y += 34
	for i, name := range columns {
		c.text(columnEnd(len(columns), i), y-10, right, "small quiet", name)
	}
	top, bottom := y, y+float64(len(b.Rows)*rowHeight)
	logGrid(&c, axis, top, bottom, b.Unit)
	if b.Mark != nil && shown(b.Mark.Value) && b.Mark.Value > 0 {
		x := axis.at(b.Mark.Value)
		c.line(x, top-4, x, bottom, "mark")
		c.text(x, top-10, middle, "small marked", b.Mark.Label)
	}
	for i, r := range b.Rows {
		b.row(&c, axis, top+float64(i*rowHeight), r, len(columns))
	}
	c.line(axis.from, top, axis.from, bottom, "axis")
	y = bottom + 38
	c.text((axis.from+axis.to)/2, y, middle, "small quiet", fmt.Sprintf("%s, logarithmic axis: it begins at %s and each strong line is ten times the one before", b.Unit, brief(low)))
	key(&c, margin, y)
	y = c.caption(y+10, b.Caption)
	return c.svg(b.ID, y+16, b.Title, b.words())
}

func columnEnd(columns, i int) float64 {
	return float64(width - margin - columnWidth*(columns-1-i))
}

func (b Bars) row(c *canvas, axis scale, top float64, r Row, columns int) {
	y := top + rowHeight/2
	name, note := "name", "small quiet"
	if r.Ours {
		name = "name strong"
	}
	if r.Weak {
		note = "small warn"
	}
	at := y + 5
	if r.Note != "" {
		at = y - 1
		c.text(margin, y+13, left, note, clip(r.Note, small, labelWidth-8))
	}
	c.text(margin, at, left, name, clip(r.Label, 14, labelWidth-8))
	if r.Missing != "" {
		c.text(axis.from+8, y+4, left, "small quiet over", clip("not measured: "+r.Missing, small, width-margin-axis.from-8))
		return
	}
	if drawn(r.P50) {
		class := "theirs"
		if r.Ours {
			class = "ours"
		}
		c.bar(axis.from, y-9, max(1, axis.at(r.P50)-axis.from), 18, class)
		whiskers(c, axis, y, r)
	}
	for i, v := range []float64{r.P50, r.P95, r.P99} {
		if drawn(v) {
			class := "quiet"
			if i == 0 {
				class = name
			}
			c.text(columnEnd(columns, i), y+5, right, class, Number(v))
		}
	}
	if columns > 3 {
		c.text(columnEnd(columns, 3), y+5, right, name, r.Against)
	}
}

func drawn(v float64) bool { return shown(v) && v > 0 }

func whiskers(c *canvas, axis scale, y float64, r Row) {
	end := r.P50
	for _, w := range []struct{ v, half float64 }{{r.P95, 4}, {r.P99, 7}} {
		if drawn(w.v) {
			x := axis.at(w.v)
			c.line(x, y-w.half, x, y+w.half, "whisker")
			end = max(end, w.v)
		}
	}
	if end > r.P50 {
		c.line(axis.at(r.P50), y, axis.at(end), y, "whisker")
	}
}

// key explains bar and whiskers by one of each.
func key(c *canvas, x, y float64) {
	y -= 4
	const begin, step = 34, 32
	c.bar(x, y-5, begin, 10, "theirs")
	c.line(x+begin, y, x+begin+2*step, y, "whisker")
	c.line(x+begin+step, y-3, x+begin+step, y+3, "whisker")
	c.line(x+begin+2*step, y-5, x+begin+2*step, y+5, "whisker")
	for i, name := range []string{"p50", "p95", "p99"} {
		c.text(x+begin+step*float64(i), y-10, middle, "small quiet", name)
	}
}

// head writes title and subtitle, and gives where they end.
func head(c *canvas, title, subtitle string) float64 {
	y := float64(margin + 14)
	c.text(margin, y, left, "title", clip(title, 18, width-2*margin))
	for _, l := range wrap(subtitle, normal, width-2*margin) {
		y += 20
		c.text(margin, y, left, "quiet", l)
	}
	return y
}

// logGrid draws the lines of a logarithmic axis: strong ones at powers of ten, with their
// values, and weak ones between, which show at a look what sort of axis it is.
func logGrid(c *canvas, axis scale, top, bottom float64, unit string) {
	for d := axis.low; d < axis.high*0.999; d *= 10 {
		for m := 2.0; m < 10; m++ {
			c.line(axis.at(m*d), top, axis.at(m*d), bottom, "grid")
		}
	}
	for d := axis.low; d < axis.high*1.001; d *= 10 {
		c.line(axis.at(d), top, axis.at(d), bottom+4, "decade")
		c.text(axis.at(d), bottom+18, middle, "small quiet", brief(d)+" "+unit)
	}
}

// words says all that the bars show.
func (b Bars) words() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s A bar chart with a logarithmic axis in %s.", sentence(b.Subtitle), b.Unit)
	if b.Mark != nil {
		fmt.Fprintf(&s, " A dashed line stands at %s %s: %s.", brief(b.Mark.Value), b.Unit, b.Mark.Label)
	}
	for _, r := range b.Rows {
		if r.Missing != "" {
			fmt.Fprintf(&s, " %s: not measured: %s.", r.Label, strings.TrimSuffix(r.Missing, "."))
			continue
		}
		fmt.Fprintf(&s, " %s", r.Label)
		if r.Note != "" {
			fmt.Fprintf(&s, " (%s)", r.Note)
		}
		fmt.Fprintf(&s, ": p50 %s, p95 %s, p99 %s %s", Number(r.P50), Number(r.P95), Number(r.P99), b.Unit)
		if r.Against != "" {
			fmt.Fprintf(&s, "; %s %s", b.Against, r.Against)
		}
		s.WriteString(".")
	}
	for _, p := range b.Caption {
		s.WriteString(" " + p)
	}
	return strings.TrimSpace(s.String())
}

// sentence ends text with a full stop.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
