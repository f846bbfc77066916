// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// width of every drawing, in the units of its own coordinates.
const width = 860

// margin around what is drawn.
const margin = 28

// canvas collects the elements of a drawing. Its height is known last.
type canvas struct {
	body bytes.Buffer
}

// num writes a coordinate: two digits after the point are more than eyes see.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0 // no reader of SVG takes such; callers keep them out
	}
	return strconv.FormatFloat(math.Round(v*100)/100+0, 'f', -1, 64)
}

// escape makes text safe inside of an element.
func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer does not fail
	return b.String()
}

type anchor string

const (
	left   anchor = "start"
	middle anchor = "middle"
	right  anchor = "end"
)

func (c *canvas) text(x, y float64, at anchor, class, s string) {
	fmt.Fprintf(&c.body, "<text x=\"%s\" y=\"%s\"", num(x), num(y))
	if at != left {
		fmt.Fprintf(&c.body, " text-anchor=\"%s\"", at)
	}
	fmt.Fprintf(&c.body, " class=\"%s\">%s</text>\n", class, escape(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.body, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" class=\"%s\"/>\n", num(x1), num(y1), num(x2), num(y2), class)
}

// bar is a rectangle that is round at its right end alone: its left one is the axis.
func (c *canvas) bar(x, y, w, h float64, class string) {
	r := math.Min(3, w)
	fmt.Fprintf(&c.body, "<path d=\"M%s %sh%sa%s %s 0 0 1 %s %sv%sa%s %s 0 0 1 %s %sh%sz\" class=\"%s\"/>\n",
		num(x), num(y), num(w-r), num(r), num(r), num(r), num(r), num(h-2*r), num(r), num(r), num(-r), num(r), num(r-w), class)
}

func (c *canvas) path(d, class string) {
	fmt.Fprintf(&c.body, "<path d=\"%s\" class=\"%s\"/>\n", d, class)
}

// caption writes paragraphs below a drawing, and gives where they end.
func (c *canvas) caption(y float64, paragraphs []string) float64 {
	for _, p := range paragraphs {
		for _, l := range wrap(p, small, width-2*margin) {
			y += 16
			c.text(margin, y, left, "small quiet", l)
		}
		y += 4
	}
	return y
}

// svg returns the whole drawing. The id sets its ids apart from those of others that are
// put into the same page.
func (c *canvas) svg(id string, height float64, title, words string) []byte {
	var b bytes.Buffer
	id = plain(id)
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %s\" width=\"%d\" height=\"%s\" role=\"img\" aria-labelledby=\"%s-title %s-words\" class=\"sandpit-plot\">\n",
		width, num(height), width, num(height), id, id)
	fmt.Fprintf(&b, "<title id=\"%s-title\">%s</title>\n<desc id=\"%s-words\">%s</desc>\n", id, escape(title), id, escape(words))
	fmt.Fprintf(&b, "<style>\n%s</style>\n", style)
	fmt.Fprintf(&b, "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%s\" rx=\"10\" class=\"ground\"/>\n", width-1, num(height-1))
	b.Write(c.body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// plain keeps of a name what an id may hold.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, s)
	return "plot-" + s
}
