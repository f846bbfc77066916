// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata anew")

// drawing is what all of them are.
type drawing interface{ SVG() []byte }

func samples() map[string]drawing {
	caption := []string{
		"200 interleaved pairs, one after the other, authentication on, every command recorded.",
		"2 cores (Processor 9000), 24 GB, Linux 6.18, data on btrfs; 2026-11-22.",
	}
	return map[string]drawing{
		"bars": Bars{
			ID: "first-command", Title: "Create → first command, cold", Subtitle: "From the request for a new sandbox to the result of its first command", Unit: "ms",
			Mark: &Mark{Value: 4, Label: "mark: p50 ≤ 4 ms"}, Against: "ratio", Caption: caption,
			Rows: []Row{
				{Label: "sandpit", Note: "200 of 200", Ours: true, P50: 2.96, P95: 4.1, P99: 9.7, Against: "1 ×"},
				{Label: "bubblewrap", Note: "200 of 200 · 0.8.0", P50: 4.4, P95: 5.2, P99: 6, Against: "1.5 ×"},
				{Label: "runc run", Note: "199 of 200 worked", Weak: true, P50: 41, P95: 55, P99: 71, Against: "13.9 ×"},
				{Label: "runsc", Missing: "it is not installed"},
				{Label: "docker run", Note: "200 of 200 · 28.2", P50: 201, P95: 255, P99: 1310, Against: "68 ×"},
			},
		},
		"lines": Lines{
			ID: "travel", Title: "Keeping, exchanging and copying disks", Subtitle: "While nothing runs inside", Unit: "ms", Size: "files in the workspace",
			Mark: &Mark{Value: 5, Label: "mark: p50 ≤ 5 ms"}, Caption: caption,
			Series: []Series{
				{Name: "snapshot", Points: []Point{{10, 2.1, 3}, {10_000, 2.2, 3.1}, {1_000_000, 2.15, 3.4}}},
				{Name: "rollback", Points: []Point{{10, 4.1, 5}, {10_000, 4.2, 5.1}, {1_000_000, 4.3, 6.4}}},
				{Name: "fork", Points: []Point{{10, 4.0, 5}, {10_000, 4.1, 0}, {1_000_000, 4.25, 5.4}}},
			},
		},
		"shifts": Shifts{
			ID: "inside", Title: "Work inside, against the bare host", Subtitle: "The same program on the same file system, in pairs", Within: 2, Caption: caption,
			Rows: []Shift{
				{Label: "processor", Note: "30 pairs", Median: 0.4, Low: -0.8, High: 1.2},
				{Label: "SQLite, 60,000 rows", Note: "30 pairs", Median: -1.3, Low: -4, High: 2},
				{Label: "git clone", Median: 3.6, Low: 1, High: 7.5},
				{Label: "untar", Note: "30 pairs", Median: 166.02, Low: 90, High: 212},
				{Label: "pytest", Missing: "the image has none"},
			},
		},
	}
}

func TestDrawingsAreTheSameBytesEachTime(t *testing.T) {
	for name, d := range samples() {
		path := filepath.Join("testdata", name+".svg")
		got := d.SVG()
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is drawn in another way; if that is meant, run the test with -update and look at it:\n%s", name, diff)
		}
	}
}

// element is one of a drawing, with its own text.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// parse reads a drawing as strictly as XML is read.
func parse(t *testing.T, svg []byte) []element {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	var all []element
	var open []int
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			e := element{name: tok.Name.Local, attrs: map[string]string{}}
			for _, a := range tok.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			open = append(open, len(all))
			all = append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				all[open[len(open)-1]].text += string(tok)
			}
		}
	}
	if len(open) != 0 || len(all) == 0 || all[0].name != "svg" {
		t.Fatalf("no whole drawing:\n%s", svg)
	}
	return all
}

// mean is text that tries to be more than text.
const mean = `"/></text></svg><script>alert(1)</script><a href="javascript:x" onload='y'>&amp; ]]> <![CDATA[ --> @import url(x)` + "\x00\x1b\xff\n|"

// hostile are drawings of which each text is mean and each number is one that has no place.
func hostile() map[string]drawing {
	out := map[string]drawing{}
	for name, v := range map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "minus inf": math.Inf(-1), "0": 0, "-1": -1, "tiny": 1e-12, "huge": 1e15} {
		out["bars "+name] = Bars{ID: mean, Title: mean, Subtitle: mean, Unit: mean, Mark: &Mark{v, mean}, Against: mean, Caption: []string{mean},
			Rows: []Row{{Label: mean, Note: mean, P50: v, P95: v, P99: v, Against: mean}, {Label: mean, Missing: mean}, {Label: "x", P50: 1, P95: v, P99: 2}}}
		out["lines "+name] = Lines{ID: mean, Title: mean, Subtitle: mean, Unit: mean, Size: mean, Mark: &Mark{v, mean}, Caption: []string{mean},
			Series: []Series{{Name: mean, Points: []Point{{v, v, v}, {1, v, 1}, {10, 1, v}}}, {Name: mean}}}
		out["shifts "+name] = Shifts{ID: mean, Title: mean, Subtitle: mean, Within: 2, Caption: []string{mean},
			Rows: []Shift{{Label: mean, Note: mean, Median: v, Low: v, High: v}, {Label: mean, Missing: mean}}}
	}
	out["empty bars"], out["empty lines"], out["empty shifts"] = Bars{}, Lines{}, Shifts{}
	return out
}

func TestDrawingsHoldNothingButShapesAndText(t *testing.T) {
	allowed := map[string]bool{"svg": true, "title": true, "desc": true, "style": true, "rect": true, "line": true, "path": true, "circle": true, "text": true}
	number := regexp.MustCompile(`NaN|Inf`)
	for _, all := range []map[string]drawing{samples(), hostile()} {
		for name, d := range all {
			for _, e := range parse(t, d.SVG()) {
				if !allowed[e.name] {
					t.Errorf("%s has an element <%s>", name, e.name)
				}
				if e.name == "style" && e.text != "\n"+style {
					t.Errorf("%s: the style is %q", name, e.text)
				}
				for k, v := range e.attrs {
					if strings.HasPrefix(k, "on") || k == "href" || k == "style" || number.MatchString(v) {
						t.Errorf("%s: <%s %s=%q>", name, e.name, k, v)
					}
				}
			}
		}
	}
}

// What is text stays text, in full, up to characters that XML cannot hold.
func TestTextIsEscapedAndKept(t *testing.T) {
	b := Bars{ID: "x", Title: `a <b> & "c"`, Unit: "ms", Rows: []Row{{Label: "<script>", P50: 1, P95: 2, P99: 3}}}
	var seen []string
	for _, e := range parse(t, b.SVG()) {
		seen = append(seen, e.text)
	}
	all := strings.Join(seen, "\n")
	for _, want := range []string{`a <b> & "c"`, "<script>"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in the text", want)
		}
	}
}

func TestDrawingsSayInWordsWhatTheyShow(t *testing.T) {
	for name, wants := range map[string][]string{
		"bars":   {"logarithmic", "sandpit (200 of 200): p50 2.96, p95 4.10, p99 9.70 ms; ratio 1 ×.", "runsc: not measured: it is not installed.", "mark: p50 ≤ 4 ms", "Linux 6.18"},
		"lines":  {"logarithmic", "at 1,000,000 p50 2.15, p95 3.40 ms", "mark: p50 ≤ 5 ms"},
		"shifts": {"linear", "SQLite, 60,000 rows: −1.3 %, p25 −4 %, p75 +2 %.", "pytest: not measured: the image has none."},
	} {
		elements := parse(t, samples()[name].SVG())
		root, title, desc := elements[0], elements[1], elements[2]
		if root.attrs["role"] != "img" || title.name != "title" || desc.name != "desc" || title.text == "" ||
			root.attrs["aria-labelledby"] != title.attrs["id"]+" "+desc.attrs["id"] {
			t.Errorf("%s is not labelled: %v %v %v", name, root.attrs, title, desc.attrs)
		}
		for _, want := range wants {
			if !strings.Contains(desc.text, want) {
				t.Errorf("%s: the description lacks %q:\n%s", name, want, desc.text)
			}
		}
	}
}

// Every class that is used has its look, in both schemes where it has a colour.
func TestEveryClassHasAColourForLightAndDark(t *testing.T) {
	light, dark, ok := strings.Cut(style, "@media (prefers-color-scheme:dark)")
	if !ok {
		t.Fatal("there is no dark scheme")
	}
	plainOnes := map[string]bool{"title": true, "name": true, "strong": true, "small": true, "sandpit-plot": true}
	for name, d := range samples() {
		for _, e := range parse(t, d.SVG()) {
			for _, class := range strings.Fields(e.attrs["class"]) {
				selector := regexp.MustCompile(`\.` + regexp.QuoteMeta(class) + `[{,]`)
				if !selector.MatchString(light) {
					t.Errorf("%s: the class %s has no look", name, class)
				}
				if !plainOnes[class] && !selector.MatchString(dark) {
					t.Errorf("%s: the class %s has no look in the dark", name, class)
				}
			}
		}
	}
}

// A bar's length is what a reader sees: it follows the axis.
func TestBarsEndAtTheirValues(t *testing.T) {
	s := scale{low: 1, high: 1000, from: 100, to: 400, log: true}
	for v, want := range map[float64]float64{1: 100, 10: 200, 100: 300, 1000: 400, 0.1: 100, 5000: 400} {
		if got := s.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v stands at %v, want %v", v, got, want)
		}
	}
	low, high := decades([]float64{2.96, 1310, 0, math.NaN(), -4})
	if low != 1 || high != 10_000 {
		t.Errorf("the axis goes from %v to %v, want 1 to 10000", low, high)
	}
	if low, high := decades([]float64{0.1}); low != 0.1 || high != 1 {
		t.Errorf("the axis goes from %v to %v, want 0.1 to 1", low, high)
	}
	x := scale{low: 1, high: 10_000, from: margin + labelWidth, to: width - margin - 4*columnWidth - 12, log: true}
	svg := string(samples()["bars"].SVG())
	for _, v := range []float64{2.96, 41, 201} {
		want := num(x.at(v) - x.from - 3)
		if !strings.Contains(svg, "h"+want+"a3 3") {
			t.Errorf("no bar ends at %v: looked for one of %s and its round end", v, want)
		}
	}
}

// What the axis does not reach is not drawn as if it stood at the edge.
func TestWhatIsBeyondTheAxisIsAnArrow(t *testing.T) {
	for v, points := range map[float64]int{99: 1, -99: 1, 101: 0, -101: 0} {
		n := 0
		for _, e := range parse(t, Shifts{Rows: []Shift{{Label: "x", Median: v}}}.SVG()) {
			if e.name == "circle" {
				n++
			}
		}
		if n != points {
			t.Errorf("%v %% is drawn as %d points, want %d", v, n, points)
		}
	}
}

func TestNamesOfLinesStandApart(t *testing.T) {
	got := apart([]tag{{y: 100}, {y: 101}, {y: 102}, {y: 30}, {y: 259}, {y: 259}}, 0, 260)
	for i := 1; i < len(got); i++ {
		if got[i].y-got[i-1].y < 18 || got[i].y > 260 {
			t.Errorf("names stand at %v", got)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{2.957: "2.96", 0: "0.00", 9.996: "10.0", 41.26: "41.3", 99.96: "100", 1234.4: "1,234", -1234567: "-1,234,567", 999: "999"} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.1: "0.1", 1_000_000: "1,000,000", 2.5: "2.5", 0: "0"} {
		if got := brief(v); got != want {
			t.Errorf("brief(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, l := range wrap(strings.Repeat("words and more ", 40)+strings.Repeat("x", 900), small, 300) {
		if extent(l, small) > 300 {
			t.Errorf("a line is too wide: %q", l)
		}
	}
	if got := wrap(" \n ", small, 300); got != nil {
		t.Errorf("got %q of nothing", got)
	}
}
