// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Shifts shows by how many per cent several differ from a reference, which stands at 0: a point
// for the median, a line for the spread. What is right of 0 is slower. The axis is linear.
type Shifts struct {
	ID       string // of letters, digits and dashes
	Title    string
	Subtitle string
	Within   float64 // per cent to both sides that count as none, as a band; 0: no band
	Rows     []Shift
	Caption  []string
}

// Shift is one of those that differ.
type Shift struct {
	Label   string
	Note    string
	Missing string // why there is no figure; "": there is
	Median  float64
	Low     float64 // of the spread; both 0: none is known
	High    float64
}

// reach is the most per cent that the axis shows, to each side; what is beyond is an arrow at
// the edge, with its number.
const reach = 100

// SVG draws it.
func (s Shifts) SVG() []byte {
	var c canvas
	y := head(&c, s.Title, s.Subtitle)
	top := y + 28
	bottom := top + float64(len(s.Rows)*rowHeight)
	far := s.Within * 1.5
	for _, r := range s.Rows {
		if r.ok() {
			far = max(far, math.Abs(r.Median), math.Abs(r.Low), math.Abs(r.High))
		}
	}
	far = min(max(far*1.05, 1), reach)
	step := steps(far, 3)
	far = math.Ceil(far/step) * step
	axis := scale{low: -far, high: far, from: margin + labelWidth + 30, to: width - margin - 104}
	if s.Within > 0 {
		fmt.Fprintf(&c.body, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" class=\"band\"/>\n",
			num(axis.at(-s.Within)), num(top), num(axis.at(s.Within)-axis.at(-s.Within)), num(bottom-top))
		c.text(axis.at(0), top-8, middle, "small marked", fmt.Sprintf("mark: within %s %%", brief(s.Within)))
	}
	for n := -math.Round(far / step); n <= math.Round(far/step); n++ {
		class, v := "grid", n*step
		if n == 0 {
			class = "axis"
		}
		c.line(axis.at(v), top, axis.at(v), bottom+4, class)
		c.text(axis.at(v), bottom+18, middle, "small quiet", signed(v))
	}
	for i, r := range s.Rows {
		r.draw(&c, axis, top+float64(i*rowHeight)+rowHeight/2)
	}
	beyond := ""
	if slices.ContainsFunc(s.Rows, func(r Shift) bool { return r.ok() && math.Abs(r.Median) > far }) {
		beyond = ", arrows are beyond"
	}
	y = bottom + 38
	c.text(axis.at(0), y, middle, "small quiet", "per cent more time than the reference, linear axis; points are medians of pairs, lines their p25 to p75"+beyond)
	y = c.caption(y+10, s.Caption)
	return c.svg(s.ID, y+16, s.Title, s.words())
}

func (r Shift) ok() bool {
	return r.Missing == "" && shown(r.Median) && shown(r.Low) && shown(r.High)
}

func (r Shift) draw(c *canvas, axis scale, y float64) {
	at := y + 5
	if r.Note != "" {
		at = y - 1
		c.text(margin, y+13, left, "small quiet", clip(r.Note, small, labelWidth+20))
	}
	c.text(margin, at, left, "name", clip(r.Label, 14, labelWidth+20))
	if !r.ok() {
		why := r.Missing
		if why == "" {
			why = "no number"
		}
		c.text(axis.from+8, y+4, left, "small quiet over", clip("not measured: "+why, small, width-margin-axis.from-8))
		return
	}
	if r.Low != 0 || r.High != 0 {
		c.line(axis.at(r.Low), y, axis.at(r.High), y, "whisker")
		c.line(axis.at(r.Low), y-4, axis.at(r.Low), y+4, "whisker")
		c.line(axis.at(r.High), y-4, axis.at(r.High), y+4, "whisker")
	}
	switch x := axis.at(r.Median); {
	case r.Median > axis.high:
		c.path(fmt.Sprintf("M%s %sl11 6l-11 6z", num(x-4), num(y-6)), "d0")
	case r.Median < axis.low:
		c.path(fmt.Sprintf("M%s %sl-11 6l11 6z", num(x+4), num(y-6)), "d0")
	default:
		c.point(x, y, 0)
	}
	c.text(width-margin, y+5, right, "name strong", signed(r.Median))
}

// signed writes per cent with a sign, and with as many digits as count.
func signed(v float64) string {
	digits := 100.0
	if math.Abs(v) >= 10 {
		digits = 10
	}
	v = math.Round(v*digits) / digits
	if v == 0 {
		return "0 %"
	}
	if v < 0 {
		return "−" + brief(-v) + " %"
	}
	return "+" + brief(v) + " %"
}

// words says all that the points show.
func (s Shifts) words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s A chart of points with a linear axis in per cent.", sentence(s.Subtitle))
	if s.Within > 0 {
		fmt.Fprintf(&b, " A band shows the mark: within %s per cent.", brief(s.Within))
	}
	for _, r := range s.Rows {
		if !r.ok() {
			fmt.Fprintf(&b, " %s: not measured: %s.", r.Label, strings.TrimSuffix(r.Missing, "."))
			continue
		}
		fmt.Fprintf(&b, " %s: %s", r.Label, signed(r.Median))
		if r.Low != 0 || r.High != 0 {
			fmt.Fprintf(&b, ", p25 %s, p75 %s", signed(r.Low), signed(r.High))
		}
		b.WriteString(".")
	}
	for _, p := range s.Caption {
		b.WriteString(" " + p)
	}
	return strings.TrimSpace(b.String())
}
