// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/kernel"
)

// figurePackages are what draws figures and holds data frames.
var figurePackages = []string{"matplotlib==3.10.8", "pandas==2.3.3", "polars==1.35.2", "numpy==2.2.6"}

// figurePython is a Python of this host with them, in a folder that outlives the tests and is named after what
// is in it.
var figurePython = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(figurePackages, " ")))
	dir := filepath.Join(cache, "sandpit-test", fmt.Sprintf("python-%x", sum[:8]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	python, whole := filepath.Join(dir, "bin", "python3"), filepath.Join(dir, "whole")
	if _, err := os.Stat(whole); err == nil {
		return python, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for _, argv := range [][]string{
		{"python3", "-m", "venv", dir},
		slices.Concat([]string{python, "-m", "pip", "install", "-q", "--disable-pip-version-check"}, figurePackages),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return python, os.WriteFile(whole, nil, 0o600)
})

// openFigures starts a kernel that has them.
func openFigures(t *testing.T) *box {
	t.Helper()
	if *bare {
		t.Skip("the host's programs alone are asked for")
	}
	python, err := figurePython()
	if err != nil {
		t.Fatalf("there is no Python with matplotlib and pandas: %v", err)
	}
	return openBy(t, kernel.Python, launchHere(t, append([]string{python}, kernel.Command(kernel.Python)[1:]...)))
}

// figure is a chart, as far as tests look at it.
type figure struct {
	Type      string           `json:"type"`
	Title     string           `json:"title"`
	Elements  []map[string]any `json:"elements"`
	XLabel    string           `json:"x_label"`
	XUnit     string           `json:"x_unit"`
	XScale    string           `json:"x_scale"`
	YScale    string           `json:"y_scale"`
	XTicks    []any            `json:"x_ticks"`
	XLabels   []string         `json:"x_tick_labels"`
	Truncated bool             `json:"truncated"`
}

// draws runs a cell, and returns the chart of its one figure.
func (b *box) draws(code string) (f figure) {
	b.t.Helper()
	r := b.run("import matplotlib.pyplot as plt\nf, a = plt.subplots()\n" + code + "\nNone")
	if len(r.Results) != 1 || r.Results[0].PNG == nil {
		b.t.Fatalf("%q shows %d results: %s", code, len(r.Results), r.err)
	}
	if r.Results[0].Chart == nil {
		b.t.Fatalf("%q has no chart; omitted: %q", code, r.Results[0].Omitted)
	}
	if err := json.Unmarshal(r.Results[0].Chart, &f); err != nil {
		b.t.Fatal(err)
	}
	return f
}

func TestFiguresAreChartsToo(t *testing.T) {
	t.Parallel()
	b := openFigures(t)
	same := func(what string, got any, want string) {
		t.Helper()
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want {
			t.Errorf("%s: got %s, want %s", what, text, want)
		}
	}
	f := b.draws("a.plot([1, 2, 3], [4, 5.5, float('nan')], label='first')\na.plot([1, 2], [1, 2])\na.set_title('Speed')\na.set_xlabel('Time (s)')")
	same("lines", f.Elements, `[{"label":"first","points":[[1,4],[2,5.5],[3,null]]},{"label":"","points":[[1,1],[2,2]]}]`)
	if f.Type != "line" || f.Title != "Speed" || f.XLabel != "Time (s)" || f.XUnit != "s" || f.XScale != "linear" || len(f.XTicks) != len(f.XLabels) || len(f.XTicks) == 0 {
		t.Errorf("lines: %+v", f)
	}
	f = b.draws("a.scatter([1, 2], [3, 4], label='s')")
	same("scatter", []any{f.Type, f.Elements}, `["scatter",[{"label":"s","points":[[1,3],[2,4]]}]]`)
	f = b.draws("a.plot([1, 2], [3, 4], 'o')")
	same("markers alone", []any{f.Type, f.Elements}, `["scatter",[{"label":"","points":[[1,3],[2,4]]}]]`)
	f = b.draws("a.bar(['x', 'y'], [3, 4], label='g')")
	same("bars", []any{f.Type, f.XScale, f.Elements}, `["bar","categorical",[{"group":"g","label":"x","value":3},{"group":"g","label":"y","value":4}]]`)
	f = b.draws("a.barh([1, 2.5], [3, 4])")
	same("bars to the right", []any{f.Type, f.Elements[1]}, `["bar",{"group":"","label":"2.5","value":4}]`)
	f = b.draws("a.bar([0.8, 1.8], [1, 2], width=0.4, label='p'); a.bar([1.2, 2.2], [3, 4], width=0.4, label='q'); a.set_xticks([1, 2], ['one', 'two'])")
	same("bars beside each other", f.Elements, `[{"group":"p","label":"one","value":1},{"group":"p","label":"two","value":2},{"group":"q","label":"one","value":3},{"group":"q","label":"two","value":4}]`)
	f = b.draws("a.pie([1, 3], labels=['x', 'y'])")
	same("pie", []any{f.Type, f.Elements}, `["pie",[{"angle":90,"label":"x","radius":1},{"angle":270,"label":"y","radius":1}]]`)
	f = b.draws("a.boxplot([[1, 2, 3, 10], [2, 3, 4]], tick_labels=['p', 'q'])")
	same("boxes", []any{f.Type, f.Elements[0]}, `["box_and_whisker",{"first_quartile":1.75,"label":"p","max":4.75,"median":2.5,"min":1,"outliers":[10],"third_quartile":4.75}]`)
	f = b.draws("import datetime\na.plot([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], [1, 2])")
	same("dates", []any{f.Type, f.XScale, f.Elements[0]["points"]}, `["line","datetime",[["2026-01-01T00:00:00",1],["2026-01-02T00:00:00",2]]]`)
	f = b.draws("a.plot([1, 10], [1, 2]); a.set_xscale('log')")
	same("powers", []any{f.XScale, f.XTicks, f.XLabels}, `["log",[1,10],["10^0","10^1"]]`)
	f = b.draws("a.imshow([[1, 2], [3, 4]])")
	same("a picture", []any{f.Type, f.Elements}, `["unknown",[]]`)
	f = b.draws("plt.close(f); f, (a, c) = plt.subplots(1, 2); a.plot([1, 2]); c.bar([1], [2]); f.suptitle('Both')")
	same("two", []any{f.Type, f.Title, f.Elements[0]["type"], f.Elements[1]["type"]}, `["composite","Both","line","bar"]`)
	f = b.draws("a.plot(range(1_000_000))")
	if n := len(f.Elements[0]["points"].([]any)); !f.Truncated || n != 20_000 {
		t.Errorf("a million points: %d of them, truncated %v", n, f.Truncated)
	}
	// What is in a figure may be the cell's own objects.
	f = b.draws("class Odd:\n    def __getattribute__(self, name): raise SystemError(name)\na.plot([1, 2]); a.lines[0].set_label('\\ud800<b>'); a.containers.append(Odd())")
	if f.Type != "line" {
		t.Errorf("beside an object that answers nothing: %q", f.Type)
	}
	f = b.draws("a.plot([1, 2]); a.set_title('T'); a.lines[0].get_data = lambda orig: 1 / 0")
	if f.Type != "unknown" || f.Title != "T" || len(f.Elements) > 0 {
		t.Errorf("what cannot be understood is %q", f.Type)
	}
	if r := b.run("plt.figure(); None"); len(r.Results) != 1 || r.Results[0].Chart != nil {
		t.Errorf("an empty figure: %+v", r.Results)
	}
	if r := b.run("1 + 1"); r.value() != "2" || r.Results[0].At.IsZero() && r.Results[0].Chart != nil {
		t.Errorf("no figure: %+v", r.Results)
	}
}

func TestDataFramesAreColumnsToo(t *testing.T) {
	t.Parallel()
	b := openFigures(t)
	data := func(code string) (string, bool) {
		t.Helper()
		r := b.run("import pandas as pd, polars as pl, datetime\n" + code)
		if len(r.Results) != 1 || r.Results[0].Text == "" {
			t.Fatalf("%q shows %+v: %s", code, r.Results, r.err)
		}
		return string(r.Results[0].Data), r.Results[0].DataCut
	}
	for code, want := range map[string]string{
		"pd.DataFrame({'a': [1, 2.5, None], 'b': ['x', None, 'y']})":                                                            `{"a":[1.0,2.5,null],"b":["x",null,"y"]}`,
		"pd.DataFrame({'t': pd.to_datetime(['2026-01-01', None]), 'n': pd.array([1, None], dtype='Int64'), 'l': [[1], 2**70]})": `{"t":["2026-01-01T00:00:00",null],"n":[1,null],"l":["[1]","1180591620717411303424"]}`,
		"pd.DataFrame([[1, 2]], columns=['a', 'a'])":                                                                            `{"a":[1],"a'":[2]}`,
		"pd.DataFrame()": `{}`,
		"pl.DataFrame({'a': [1, None], 'd': [datetime.datetime(2026, 1, 1), None]})": `{"a":[1,null],"d":["2026-01-01T00:00:00",null]}`,
		"class DataFrame:\n    shape = (1, 1)\nDataFrame()":                          ``,
		"pd.Series([1, 2])": ``,
	} {
		if got, cut := data(code); got != want || cut {
			t.Errorf("%q has %s (cut: %v), want %s", code, got, cut, want)
		}
	}
	for code, most := range map[string]int{
		"pd.DataFrame({'a': range(5000)})":                         1000,
		"pl.DataFrame({'a': range(5000)})":                         1000,
		"pd.DataFrame([range(100)] * 500)":                         20_000,
		"pd.DataFrame([range(300)] * 3)":                           300,
		"pd.DataFrame({'a': ['x' * 5000]})":                        1,
		"pd.DataFrame([['y' * 4000] * 120] * 300)":                 20_000,
		"pd.DataFrame({'a': [float('inf')] * 1001})[['a']].copy()": 1000,
	} {
		text, cut := data(code)
		var columns map[string][]any
		if err := json.Unmarshal([]byte(text), &columns); err != nil && text != "" {
			t.Fatalf("%q: %v", code, err)
		}
		n := 0
		for _, c := range columns {
			n += len(c)
		}
		if !cut && text != "" || n > most {
			t.Errorf("%q: %d values, cut %v; want at most %d", code, n, cut, most)
		}
	}
}

// Code can send forms of any type: what is no chart, and no columns, is left out.
func TestFormsThatAreNoChartsAreLeftOut(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	const chart, data = "application/vnd.sandpit.chart+json", "application/vnd.sandpit.data+json"
	for _, c := range []struct {
		mime, form string
		right      bool
	}{
		{chart, `{"type": "line", "title": "", "elements": []}`, true},
		{chart, `{"type": "line", "title": "", "elements": [{"x": [1, None, "\\ud800"]}], "more": 1}`, true},
		{chart, `{"type": "nope", "title": "", "elements": []}`, false},
		{chart, `{"type": "line", "elements": []}`, false},
		{chart, `{"type": "line", "title": "", "elements": None}`, false},
		{chart, `{"type": "line", "title": "", "elements": {}}`, false},
		{chart, `{"type": ["line"], "title": "", "elements": []}`, false},
		{chart, `[1]`, false},
		{chart, `None`, false},
		{chart, `"line"`, false},
		{data, `{"columns": {"a": [1, "x", None]}}`, true},
		{data, `{"columns": {}}`, true},
		{data, `{"columns": {"a": 1}}`, false},
		{data, `{"columns": [1]}`, false},
		{data, `{"columns": None}`, false},
		{data, `{}`, false},
		{data, `{"columns": {"a": []}, "cut": "yes"}`, false},
		{data, `"x"`, false},
	} {
		r := b.run(fmt.Sprintf("display({%q: %s, 'text/plain': 'x'}, raw=True)", c.mime, c.form))
		if len(r.Results) != 1 {
			t.Fatalf("%s: %d results", c.form, len(r.Results))
		}
		got := r.Results[0]
		if has := got.Chart != nil || got.Data != nil; has != c.right || slices.Contains(got.Omitted, c.mime) == c.right || got.Text != "x" {
			t.Errorf("%s %s: chart %s, data %s, omitted %q", c.mime, c.form, got.Chart, got.Data, got.Omitted)
		}
	}
}
