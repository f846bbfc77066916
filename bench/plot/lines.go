// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Lines shows how a cost grows: the p50 of each series over a logarithmic axis of sizes,
// with whiskers up to the p95. The axis of the cost begins at 0, so that what is flat
// looks flat and what grows looks it.
type Lines struct {
	ID       string // of letters, digits and dashes
	Title    string
	Subtitle string
	Unit     string // of the cost: "ms"
	Size     string // what the sizes are: "files in the workspace"
	Means    bool   // values are means, and none has a whisker
	Series   []Series
	Mark     *Mark
	Caption  []string
}

// Series is one line. From the fifth on they look like the first four.
type Series struct {
	Name   string
	Points []Point // of growing size
}

// Point is the cost at a size above 0. One that cannot be drawn (negative, infinite, not a number)
// is left out.
type Point struct {
	Size float64
	P50  float64
	P95  float64 // 0: none is known
}

const (
	plotHeight = 260
	gutter     = 54  // for the values beside the axis
	nameWidth  = 178 // for the names at the lines' ends
)

// SVG draws it.
func (l Lines) SVG() []byte {
	var c canvas
	y := head(&c, l.Title, l.Subtitle)
	top, bottom := y+34, y+34+plotHeight
	var sizes []float64
	high := 0.0
	if l.Mark != nil && shown(l.Mark.Value) {
		high = l.Mark.Value
	}
	for _, s := range l.Series {
		for _, p := range s.Points {
			if p.ok() {
				sizes = append(sizes, p.Size)
				high = max(high, p.P50, p.upper())
			}
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	step := steps(high*1.05, 5)
	up := scale{high: max(step, math.Ceil(high*1.05/step)*step), from: bottom, to: top}
	across := scale{from: margin + gutter + 14, to: width - margin - nameWidth - 14, log: true}
	across.low, across.high = span(sizes)

	edge := across.to + 14
	for n := 0; float64(n)*step <= up.high*1.001; n++ {
		v := float64(n) * step
		class := "grid"
		if n == 0 {
			class = "axis"
		}
		c.line(margin+gutter, up.at(v), edge, up.at(v), class)
		c.text(margin+gutter-8, up.at(v)+4, right, "small quiet", brief(v))
	}
	c.text(margin+gutter-8, top-14, right, "small quiet", l.Unit)
	l.sizes(&c, across, bottom, sizes)
	marked := l.Mark != nil && shown(l.Mark.Value) && l.Mark.Value > 0
	if marked {
		c.line(margin+gutter, up.at(l.Mark.Value), edge, up.at(l.Mark.Value), "mark")
	}
	l.draw(&c, across, up)
	if marked { // right of the first whiskers
		c.text(across.from+24, up.at(l.Mark.Value)-6, left, "small marked over", l.Mark.Label)
	}
	y = bottom + 42
	c.text((across.from+across.to)/2, y, middle, "small quiet",
		fmt.Sprintf("%s, logarithmic axis; the other axis begins at 0; %s", l.Size, l.reading()))
	y = c.caption(y+10, l.Caption)
	return c.svg(l.ID, y+16, l.Title, l.words())
}

// reading says what points are.
func (l Lines) reading() string {
	if l.Means {
		return "points are means"
	}
	return "points are the p50, whiskers end at the p95"
}

func (p Point) ok() bool { return shown(p.P50) && p.P50 >= 0 && shown(p.Size) && p.Size > 0 }

// upper is where the whisker ends; the p50 where there is none.
func (p Point) upper() float64 {
	if shown(p.P95) && p.P95 > p.P50 {
		return p.P95
	}
	return p.P50
}

// span is the range of an axis for sorted values; it is never empty.
func span(sorted []float64) (low, high float64) {
	if len(sorted) == 0 {
		return 1, 10
	}
	low, high = sorted[0], sorted[len(sorted)-1]
	if low == high {
		return low / 2, high * 2
	}
	return low, high
}

// sizes writes those that were measured below the axis, but none over another.
func (l Lines) sizes(c *canvas, across scale, bottom float64, sorted []float64) {
	free := math.Inf(-1)
	for _, v := range sorted {
		x := across.at(v)
		c.line(x, bottom, x, bottom+5, "axis")
		half := extent(brief(v), small) / 2
		if x-half > free {
			c.text(x, bottom+20, middle, "small quiet", brief(v))
			free = x + half + 4
		}
	}
}

// tag is the name of a line, at its end.
type tag struct {
	y    float64
	kind int
	name string
	last float64
}

func (l Lines) draw(c *canvas, across, up scale) {
	var tags []tag
	for i, s := range l.Series {
		kind := i % kinds
		var d strings.Builder
		last := math.NaN()
		for _, p := range s.Points {
			if !p.ok() {
				continue
			}
			verb := "L"
			if d.Len() == 0 {
				verb = "M"
			}
			// Neighbours' whiskers stand beside one another.
			x, y := across.at(p.Size)+(float64(i)-float64(len(l.Series)-1)/2)*5, up.at(p.P50)
			if top := p.upper(); top > p.P50 {
				c.line(x, y, x, up.at(top), "whisker")
				c.line(x-3, up.at(top), x+3, up.at(top), "whisker")
			}
			fmt.Fprintf(&d, "%s%s %s", verb, num(x), num(y))
			last = p.P50
		}
		if d.Len() == 0 {
			continue
		}
		c.path(d.String(), fmt.Sprintf("s%d", kind))
		for _, p := range s.Points {
			if p.ok() {
				x := across.at(p.Size) + (float64(i)-float64(len(l.Series)-1)/2)*5
				c.point(x, up.at(p.P50), kind)
			}
		}
		tags = append(tags, tag{up.at(last), kind, s.Name, last})
	}
	for _, t := range apart(tags, up.to, up.from) {
		x := across.to + 26
		c.point(x, t.y, t.kind)
		value := " " + Number(t.last) + " " + l.Unit
		name := clip(t.name, normal, nameWidth-26-extent(value, normal))
		c.text(x+10, t.y+4.5, left, fmt.Sprintf("n%d", t.kind), name+value)
	}
}

// point draws a kind's own shape: colours alone do not tell lines apart.
func (c *canvas) point(x, y float64, kind int) {
	class := fmt.Sprintf("d%d", kind)
	switch kind {
	case 0:
		fmt.Fprintf(&c.body, "<circle cx=\"%s\" cy=\"%s\" r=\"4\" class=\"%s\"/>\n", num(x), num(y), class)
	case 1:
		c.path(fmt.Sprintf("M%s %sh7v7h-7z", num(x-3.5), num(y-3.5)), class)
	case 2:
		c.path(fmt.Sprintf("M%s %sl4.5 8h-9z", num(x), num(y-4.5)), class)
	default:
		c.path(fmt.Sprintf("M%s %sl4.8 4.8l-4.8 4.8l-4.8 -4.8z", num(x), num(y-4.8)), class)
	}
}

// apart moves names that would overlap, keeping their order, between two edges.
func apart(tags []tag, top, bottom float64) []tag {
	const least = 18
	slices.SortStableFunc(tags, func(a, b tag) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	for i := 1; i < len(tags); i++ {
		tags[i].y = max(tags[i].y, tags[i-1].y+least)
	}
	if n := len(tags); n > 0 {
		limit := bottom - 2
		for i := n - 1; i >= 0; i-- {
			tags[i].y = max(min(tags[i].y, limit), top)
			limit = tags[i].y - least
		}
	}
	return tags
}

// words says all that the lines show.
func (l Lines) words() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s A line chart: %s over %s, which has a logarithmic axis.", sentence(l.Subtitle), l.Unit, l.Size)
	if l.Mark != nil {
		fmt.Fprintf(&s, " A dashed line stands at %s %s: %s.", brief(l.Mark.Value), l.Unit, l.Mark.Label)
	}
	for _, line := range l.Series {
		fmt.Fprintf(&s, " %s:", line.Name)
		for i, p := range line.Points {
			if i > 0 {
				s.WriteString(";")
			}
			fmt.Fprintf(&s, " at %s ", brief(p.Size))
			if !l.Means {
				s.WriteString("p50 ")
			}
			s.WriteString(Number(p.P50))
			if p.P95 > 0 {
				fmt.Fprintf(&s, ", p95 %s", Number(p.P95))
			}
			s.WriteString(" " + l.Unit)
		}
		s.WriteString(".")
	}
	for _, p := range l.Caption {
		s.WriteString(" " + p)
	}
	return strings.TrimSpace(s.String())
}
