// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
	"sandpit.dev/fault"
	"sandpit.dev/test/browser/cost"
)

const docs = "../testdata/tree/docs" // through a link, see bench/guard_test.go

var update = flag.Bool("update", false, "write the README's sentence anew")

// The pages of the repository are what the program makes of the reports beside them, byte for byte:
// nobody edits a claim into them, and nobody changes the program without them.
func TestThePagesOfTheRepositoryAreTheirReports(t *testing.T) {
	for _, dir := range []string{docs} {
		t.Run(filepath.Base(dir), func(t *testing.T) { isItsReport(t, dir) })
	}
}

func isItsReport(t *testing.T, dir string) {
	r, err := Read(filepath.Join(dir, filepath.FromSlash(Data)))
	if err != nil {
		t.Fatalf("%v; measure anew: sandpit bench --report DIR", err)
	}
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	const remedy = "if the program changed: sandpit bench --from DIR/benchmarks/report.json --report DIR"
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		kept, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			t.Errorf("%v; %s", err, remedy)
			continue
		}
		if diff := cmp.Diff(string(f.Data), string(kept)); diff != "" {
			t.Errorf("%s is not what its report says (-report +kept); %s\n%s", f.Name, remedy, diff)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, plots))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(names, plots+"/"+e.Name()) {
			t.Errorf("%s/%s belongs to no report", plots, e.Name())
		}
	}
}

// What the README says of speed is the page's summary, word for word.
func TestTheReadmeSaysWhatThePageSays(t *testing.T) {
	r, err := Read(filepath.Join(docs, filepath.FromSlash(Data)))
	if err != nil {
		t.Fatal(err)
	}
	const path = "../testdata/tree/README.md"
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "[The last run](docs/benchmarks.md): "
	before, rest, ok := strings.Cut(string(readme), begin)
	said, after, whole := strings.Cut(rest, ".\n")
	if !ok || !whole {
		t.Fatalf("README.md has no sentence that begins with %q", begin)
	}
	want := Summary(r)
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+".\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if said != want {
		t.Errorf("README.md says of the last run %q, the page %q: go test ./bench/page -update", said, want)
	}
}

// full is a report that has all there can be. Each number with a fraction is another one,
// from 1.01 on, in the order of the fields.
func full(t *testing.T) (*bench.Report, map[string]string) {
	t.Helper()
	r := &bench.Report{}
	paths := map[string]string{}
	next := 1.0
	var fill func(v reflect.Value, path string)
	fill = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), path)
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)))
				return
			}
			for i := range v.NumField() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
			if f, ok := v.Addr().Interface().(*bench.Figures); ok {
				f.N, f.OK, f.Success = 200, 200, 1
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), path+"[0]")
			fill(v.Index(1), path+"[1]")
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			keys := []string{"sandpit", "runc", "docker"}
			switch {
			case path == ".FirstCommand":
				keys = append(keys, "sandpit_two_requests", "sandpit_shell")
			case strings.HasSuffix(path, "Ratio"):
				keys = keys[1:]
			}
			for _, key := range keys {
				e := reflect.New(v.Type().Elem()).Elem()
				fill(e, path+"["+key+"]")
				v.SetMapIndex(reflect.ValueOf(key), e)
			}
		case reflect.Float64:
			if next += .01; next >= 10 {
				next += .09 // three digits are printed
			}
			v.SetFloat(next)
			paths[path] = plot.Number(next)
		case reflect.Int, reflect.Int64:
			v.SetInt(200)
		case reflect.String:
			v.SetString("words of " + path)
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("a report has a %v at %s, which the test cannot fill", v.Kind(), path)
		}
	}
	fill(reflect.ValueOf(r).Elem(), "")
	if next > 99.8 {
		t.Fatalf("there are more numbers than this test tells apart: %v", next)
	}
	return r, paths
}

// What is measured is printed: a field that is added to the report, and not to the page,
// fails here.
func TestEveryNumberOfAReportIsOnThePage(t *testing.T) {
	r, paths := full(t)
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	for path, want := range paths {
		switch {
		case path == ".Took", strings.HasSuffix(path, ".Success"):
			continue // printed in whole seconds, and as "200 of 200"
		case path == ".FilesChanged[0].Growth":
			continue // the growth over itself
		}
		if !strings.Contains(page, want) {
			t.Errorf("%s, %s, is not on the page", path, want)
		}
	}
}

func TestAReportWithoutAnythingHasAPage(t *testing.T) {
	files, err := Render(new(bench.Report))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Errorf("got %d files, want page and report alone", len(files))
	}
	page := string(files[0].Data)
	for _, want := range []string{"**0 missed, 0 reached in part, 0 reached,", "Parts that this run left out:"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if Summary(new(bench.Report)) != "" {
		t.Error("there is a summary of nothing")
	}
}

func figures(p50 float64) *bench.Figures {
	return &bench.Figures{N: 200, OK: 200, Success: 1, Min: p50 / 2, P50: p50, P95: p50 * 2, P99: p50 * 3}
}

func TestMissedMarksComeFirst(t *testing.T) {
	r := &bench.Report{
		FirstCommand:      map[string]*bench.Figures{"sandpit": figures(5.5), "runc": figures(50)},
		FirstCommandRatio: map[string]*float64{"runc": new(12.5), "docker": new(39.9)},
		Exec:              map[string]*bench.Figures{"sandpit": figures(.9)},
	}
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	last := 0
	for _, row := range []string{
		"**3 missed, 0 reached in part, 2 reached,",
		"| create → first command, cold: p50 | ≤ 4 ms | 5.50 ms | **missed** |",
		"| create → first command, cold: p99 | ≤ 15 ms | 16.5 ms | **missed** |",
		"| Docker, by the Engine's API, takes longer to the first command | ≥ 40 × | 39.9 × | **missed** |",
		"| `runc run` takes longer to the first command | ≥ 10 × | 12.5 × | reached |",
		"| command in a sandbox that runs: p50 | ≤ 1 ms | 0.90 ms | reached |",
		"| pause, through REST: p50 | ≤ 2 ms | – | not measured |",
		"## What is weak here",
		"## A new sandbox's first command",
	} {
		at := strings.Index(page, row)
		if at < last {
			t.Errorf("%q is not on the page, or not after what it should follow:\n%s", row, page)
			continue
		}
		last = at
	}
	for _, want := range []string{"p50 5.50 ms", "runc run takes 12.5 times as long", "marks missed: 3"} {
		if got := Summary(r); !strings.Contains(got, want) {
			t.Errorf("the summary %q lacks %q", got, want)
		}
	}
	r.Machine = bench.Machine{Cores: 2, Others: 1}
	if got := Summary(r); !strings.Contains(got, "busy") || !strings.Contains(got, "marks missed: 3") || strings.Contains(got, "5.50") {
		t.Errorf("a busy machine's summary is %q", got)
	}
}

// A mark of a time says what of it is the program's own.
func TestAMarkSaysWhatTheProgramAloneTakes(t *testing.T) {
	r := &bench.Report{
		FirstCommand: map[string]*bench.Figures{"sandpit": {N: 1, OK: 1, P50: 6}, "host": {N: 1, OK: 1, P50: 1.25}},
		Exec:         map[string]*bench.Figures{"sandpit": {N: 1, OK: 1, P50: 3}, "host": {N: 1, OK: 1, P50: 1.5}},
	}
	for _, c := range []struct{ what, want string }{
		{"create → first command, cold: p50", "6.00 ms; the bare host takes 1.25 ms for the program alone"},
		{"command in a sandbox that runs: p50", "3.00 ms; the bare host takes 1.50 ms for the program alone"},
	} {
		if got := markOf(t, r, c.what).here(); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	delete(r.Exec, "host")
	if got := markOf(t, r, "command in a sandbox that runs: p50").here(); got != "3.00 ms" {
		t.Errorf("where the host was not measured the page says %q", got)
	}
}

func markOf(t *testing.T, r *bench.Report, what string) mark {
	t.Helper()
	for _, m := range marks(r) {
		if m.what == what {
			return m
		}
	}
	t.Fatalf("there is no mark %q", what)
	return mark{}
}

// That nothing leaked is said where somebody looked, and then alone.
func TestWhatLivesLeftIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		left   []string
		said   string
		figure *float64
	}{
		"nobody looked": {nil, "was not looked for", nil},
		"nothing":       {[]string{}, "They left nothing on the host", new(0.0)},
		"two things":    {[]string{"process 7 (sleep)", "mount | x"}, "**They left 2 things:**\n\n- process 7 (sleep)\n- mount \\| x\n", new(2.0)},
	} {
		r := &bench.Report{Throughput: &bench.Throughput{Sustained: &bench.Sustained{Seconds: 300, Life: figures(5), Left: c.left, Kept: map[string]int{"loops": 1}}}}
		if got := throughput(r); !strings.Contains(got, c.said) {
			t.Errorf("%s: the page says %s", name, got)
		}
		for _, m := range crowdMarks(r) {
			if strings.Contains(m.what, "leave on the host") {
				if diff := cmp.Diff(c.figure, m.figure); diff != "" {
					t.Errorf("%s: the figure of the mark:\n%s", name, diff)
				}
			}
		}
	}
}

// A mark is held against the worst case, and not reached by a case that was left out.
func TestMarksOfDisksAreHeldAgainstTheWorstCase(t *testing.T) {
	disk := func(files int, condition string, snapshot float64) bench.Disk {
		return bench.Disk{Files: files, Condition: condition, Snapshot: figures(snapshot), Rollback: figures(1), Fork: figures(1)}
	}
	r := &bench.Report{Travel: &bench.Travel{Disks: []bench.Disk{
		disk(10, bench.Idling, 2), disk(10_000, bench.Idling, 6), disk(10, bench.Writing, 9),
	}}}
	all := diskMarks(r)
	if m := all[0]; m.reached() || *m.figure != 6 || !strings.Contains(m.beside, "10,000 files, "+bench.Idling) || !strings.Contains(m.part, "not measured beyond 10,000 files") {
		t.Errorf("idle: got %+v", m)
	}
	if m := all[3]; !m.reached() || *m.figure != 9 || !strings.Contains(m.part, "not measured beyond 10 files") {
		t.Errorf("live: got %+v", m)
	}
	if of := sorted(all); len(of.missed) != 1 || len(of.part) != 5 || len(of.met) != 0 {
		t.Errorf("got %d missed, %d in part, %d reached; what was not measured at 1,000,000 files is not reached", len(of.missed), len(of.part), len(of.met))
	}
}

func TestWhatIsWeakIsSaid(t *testing.T) {
	r := &bench.Report{
		Pairs: 20, Machine: bench.Machine{Cores: 2, Others: 1.2, Stolen: .3, CPUID: 12}, Prewarmed: 4, Parts: []string{"exec"},
		FirstCommand: map[string]*bench.Figures{"sandpit": figures(3), "runc": {N: 20, OK: 18, P50: 1, P95: 1, P99: 1}}, FirstCommandRatio: map[string]*float64{"runc": new(.8)},
		Exec:     map[string]*bench.Figures{"sandpit": {N: 20}},
		Missing:  map[string]string{"docker": "no engine | <here>"},
		Failures: []string{"runc: exit status 1"},
	}
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	for _, want := range []string{
		"> **The machine was busy**", "others used 1.20 cores, 0.30 were stolen", "Only 20 pairs", "Faster than sandpit to the first command: runc run, which takes 0.80 times as long",
		"**18 of 20**", "**0 of 20** | – | – | – | – |", `no engine \| &lt;here\>.`, "Failed at least once: runc: exit status 1", "kept 4 prewarmed sandboxes", "`operations`",
		"| one CPUID instruction | 12.0 µs", "0.82 ms are `true` asking",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, m := range marks(r) {
		if strings.Contains(m.what, "cold") && m.figure != nil {
			t.Errorf("a server with prewarmed sandboxes has a figure for %q", m.what)
		}
	}
}

// Names and messages are others' words: they stay words, in the page and in the plots.
func TestOthersWordsStayWords(t *testing.T) {
	mean := "x\n\n# Heading\n| a | b |\n<script>alert(1)</script> [a](javascript:b) ![c](http://d.test/e) `f` **g** \x00\xff</text>&amp;"
	r, _ := full(t)
	r.Machine.CPU, r.Machine.Kernel, r.Machine.DataFS = mean, mean, mean
	r.Versions = map[string]string{mean: mean, "sandpit": mean}
	r.Missing = map[string]string{mean: mean, "docker": mean}
	r.FirstCommand["docker"] = nil
	r.FirstCommand[mean] = figures(4)
	r.Failures = []string{mean}
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	for _, bad := range []string{"\n# Heading", "\n| a | b", "<script", " **g**", " `f`", "\x00"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if link := regexp.MustCompile(`[^\\]\]\((javascript|http)`).FindString(page); link != "" {
		t.Errorf("the page has a link %q", link)
	}
	for _, f := range files[2:] {
		d := xml.NewDecoder(bytes.NewReader(f.Data))
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "script" {
				t.Errorf("%s has a script", f.Name)
			}
		}
	}
}

// Every plot that is drawn is on the page, and can be removed by the next report.
func TestEveryPlotIsOnThePage(t *testing.T) {
	r, _ := full(t)
	r.Density.Steps[0].Alive, r.Density.Steps[1].Alive = 10, 100
	r.Travel.Disks = []bench.Disk{
		{Files: 10, Condition: bench.Idling, Snapshot: figures(1), Rollback: figures(2), Fork: figures(3)},
		{Files: 10, Condition: bench.Writing, Snapshot: figures(1), Rollback: figures(2), Fork: figures(3)},
	}
	files, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	var names []string
	for _, f := range files[2:] {
		name := strings.TrimSuffix(strings.TrimPrefix(f.Name, plots+"/"), ".svg")
		names = append(names, name)
		if !strings.Contains(page, "]("+f.Name+")") {
			t.Errorf("%s is drawn and not shown", f.Name)
		}
	}
	if diff := cmp.Diff(plotNames, names); diff != "" {
		t.Errorf("of a full report all plots are drawn (-known +drawn):\n%s", diff)
	}
}

func TestEveryPeerIsExplained(t *testing.T) {
	texts := peerTexts()
	for _, name := range append([]string{"sandpit"}, bench.Peers()...) {
		if texts[name].label == "" || texts[name].timed == "" {
			t.Errorf("the page does not say what is timed of %s", name)
		}
	}
	for name := range texts {
		if name != "sandpit" && !slices.Contains(bench.Peers(), name) {
			t.Errorf("the page explains %s, which is no peer", name)
		}
	}
}

func TestWriteReplacesAReportAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	r, _ := full(t)
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, plots, "own.svg")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := Read(filepath.Join(dir, filepath.FromSlash(Data)))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := Render(r)
	got, err := Render(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a report that was written and read is another:\n%s", diff)
	}
	if err := Write(dir, new(bench.Report)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, plots))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"own.svg", "report.json"}, names); diff != "" {
		t.Errorf("after a report without plots there is:\n%s", diff)
	}
}

func TestWriteSaysWhatIsInItsWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Write": Write(path, new(bench.Report)), "Prepare": Prepare(path)} {
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s into a file: %v", name, err)
		}
	}
}

func TestReadTakesNothingButAReport(t *testing.T) {
	whole, err := json.Marshal(new(bench.Report))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nothing": "", "another version's": `{"pairs": 1, "later": 2}`, "no JSON": "# Benchmarks", "two": string(whole) + string(whole),
		"half": string(whole[:len(whole)/2]), "another type": `{"pairs": "many"}`, "too long": `{"pairs": 1` + strings.Repeat(" ", mostJSON) + "}",
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Read(path); !fault.Is(err, fault.Invalid) || r != nil {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "missing")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_000_000: "1,000,000", -1234: "-1,234", -123: "-123"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	if got := fmt.Sprint(join(nil), join([]string{"a"}), " ", join([]string{"a", "b", "c"})); got != "a a, b and c" {
		t.Errorf("got %q", got)
	}
}

// Marks of the console are held against the worst of what was measured, and not reached by less than they ask for.
func TestMarksOfTheConsole(t *testing.T) {
	c := &bench.Console{
		Sandboxes: 10_000, Paint: figures(120), Usable: figures(310), Rows: figures(70), Elements: 1200, Busy: bench.Scrolled{Tasks: cost.Tasks{Long: 3, Longest: 61}},
		Output: &bench.MuchOutput{Before: 1, Most: 30, After: 4},
		Beside: &bench.BesideTabs{Tabs: 20, OneRatio: &bench.Spread{N: 8, Low: .98, Median: 1.02, High: 1.07}, AllRatio: &bench.Spread{N: 8, Median: 1.5}},
	}
	r := &bench.Report{Console: c}
	of := sorted(consoleMarks(r))
	if len(of.missed) != 2 || len(of.met) != 6 || len(of.part) != 0 || len(of.absent) != 0 {
		t.Errorf("got %d missed, %d reached, %d in part, %d not measured; usable and scrolling are missed", len(of.missed), len(of.met), len(of.part), len(of.absent))
	}
	for what, want := range map[string]string{
		"console, 10,000 sandboxes: longest task while it scrolls":             "61.0 ms; 3 of 50 ms or more",
		"console, 10 MB/s of output: longest task":                             "0.00 ms; none of 50 ms or more",
		"command beside 20 tabs of its sandbox, one looked at, more time: p50": "2.00 %; the middle half of 8 rounds: −2.00 to +7.00 %",
	} {
		if got := markOf(t, r, what).here(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	c.Sandboxes, c.Beside.Tabs = 500, 3
	if of := sorted(consoleMarks(r)); len(of.part) != 3 {
		t.Errorf("of 500 sandboxes and 3 tabs %d marks are reached in part: rows, elements and tabs are", len(of.part))
	}
}
