// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/image/entry"
	"sandpit.dev/internal/skiptest"
)

func TestEntriesBeginWithWhatThereIs(t *testing.T) {
	e := func(name, base string, aliases ...string) entry.Entry {
		return entry.Entry{Name: name, Base: base, Aliases: aliases, Env: map[string]string{"A": "b"}, Source: name + ".yaml"}
	}
	for title, c := range map[string]struct {
		entries []entry.Entry
		says    string
	}{
		"one":            {[]entry.Entry{e("one", "python")}, ""},
		"in a row":       {[]entry.Entry{e("two", "other/one:1"), e("one", "python", "other/one:1")}, ""},
		"no such base":   {[]entry.Entry{e("one", "ptyhon")}, `one.yaml: there is no image "ptyhon"`},
		"itself":         {[]entry.Entry{e("one", "one")}, "begins with itself"},
		"in a circle":    {[]entry.Entry{e("one", "two"), e("two", "three"), e("three", "one")}, "begins with itself"},
		"a name of ours": {[]entry.Entry{e("python", "python")}, `the name "python" belongs to the image python`},
		"an alias twice": {[]entry.Entry{e("one", "python", "x"), e("two", "python", "x")}, `two.yaml: the name "x" belongs to the image one`},
	} {
		all, err := withEntries([]recipe{{Entry: Entry{Name: "python"}}}, c.entries)
		if c.says == "" && (err != nil || len(all) != len(c.entries)+1) || c.says != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d, %v; want %q", title, len(all), err, c.says)
		}
	}
}

// maker is a builder with a layer of its own.
type maker struct {
	layer  []byte
	fail   error // of Build, after some output
	broken error // of the layer, at its half
	node   string
	jobs   []Job
	closed int
}

func (m *maker) Build(_ context.Context, j Job) (*Built, error) {
	m.jobs = append(m.jobs, j)
	j.Report("step 1 of 1", "doing it", 0.5)
	fmt.Fprintln(j.Log, "what the step says")
	if m.fail != nil {
		return nil, m.fail
	}
	return &Built{
		Layer: func(_ context.Context, w io.Writer) error {
			if m.broken != nil {
				_, _ = w.Write(m.layer[:len(m.layer)/2])
				return m.broken
			}
			_, err := w.Write(m.layer)
			return err
		},
		Resolved: map[string]string{"pip": "hash"}, Packages: map[string]string{"extra": "1.0"}, Inspected: "tool=2.0\nnode=v" + m.node + "\nabsent=docker\nhostile=1\n",
		Close: sync.OnceFunc(func() { m.closed++ }),
	}, nil
}

func TestAnEntryIsBuiltAndKept(t *testing.T) {
	skiptest.WithoutRoot(t, "files of an image have owners")
	dir := t.TempDir()
	small := recipe{Entry: Entry{Name: "small"}, Stages: []stage{{Name: "files", Weight: 1, Run: func(_ context.Context, w *work) error {
		return errors.Join(os.MkdirAll(filepath.Join(w.root, "etc"), 0o755), os.WriteFile(filepath.Join(w.root, "etc/base"), []byte("base"), 0o644))
	}}}, Env: map[string]string{"PATH": "/bin", "A": "base"}, Inspect: func(context.Context, *work) (contents, error) {
		return contents{Versions: map[string]string{"tool": "1.0", "gone": "1.0"}}, nil
	}}
	begin := func(m *maker) *Store {
		t.Helper()
		recipes, err := withEntries([]recipe{small}, []entry.Entry{{Name: "mine", Base: "small", Env: map[string]string{"A": "b"}, Steps: []entry.Step{{Title: "doing it"}}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := open(Options{Dir: dir}, recipes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		s.Use(m)
		return s
	}
	inside := func(name string) []string {
		t.Helper()
		all, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range all {
			out = append(out, e.Name())
		}
		return out
	}

	m := &maker{node: "22.1.0", layer: layerOf(t, dirEntry("etc"), fileEntry("etc/mine")), fail: fault.New(fault.Timeout, "it took too long").WithRemedy("wait")}
	s := begin(m)
	if _, err := s.Ensure(t.Context(), "mine"); !fault.Is(err, fault.Timeout) || fault.As(err).Remedy != "wait" || !strings.Contains(fault.As(err).Message, `building the image "mine" failed in step 1 of 1: it took too long`) {
		t.Errorf("a failed step: %v", err)
	}
	all, err := s.List(t.Context())
	if err != nil || all[1].State != Failed || len(all[1].Output) != 1 || all[1].Output[0] != "what the step says" || all[1].Stage != "step 1 of 1" {
		t.Errorf("the status: %+v, %v", all[1], err)
	}
	if got := inside("mine"); len(got) != 1 || got[0] != buildLogName {
		t.Errorf("left are %q", got)
	}

	m.fail, m.broken = nil, errors.New("the disk broke")
	if _, err := s.Ensure(t.Context(), "mine"); err == nil {
		t.Error("half a layer made an image")
	}
	if got := inside("mine"); len(got) != 1 || m.closed != 1 {
		t.Errorf("left are %q, closed %d times", got, m.closed)
	}

	m.broken = nil
	img, err := s.Ensure(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(img.Root, "etc/mine")); err != nil || string(got) != "etc/mine" {
		t.Errorf("%q, %v", got, err)
	}
	if img.Env["A"] != "b" || img.Env["PATH"] != "/bin" || fmt.Sprint(img.Versions) != "map[extra:1.0 node:22.1.0 tool:2.0]" || fmt.Sprint(img.Absent) != "[docker]" {
		t.Errorf("%+v", img)
	}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(img.Root), buildLogName)); err != nil || string(text) != "what the step says\n" {
		t.Errorf("the log: %q, %v", text, err)
	}

	// The same base, entry and versions make the same digest, and a killed build leaves nothing to go on with.
	for _, e := range inside("mine") {
		if e != buildLogName {
			if err := os.Rename(filepath.Join(dir, "mine", e), filepath.Join(dir, "mine", workName)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s = begin(m)
	if got := inside("mine"); len(got) != 1 {
		t.Errorf("left are %q", got)
	}
	again, err := s.Ensure(t.Context(), "mine")
	if err != nil || again.Digest != img.Digest {
		t.Errorf("%s, %v; want %s", again.Digest, err, img.Digest)
	}
	if same, err := s.Rebuild(t.Context(), "mine"); err != nil || same.Digest != img.Digest || len(m.jobs) != 5 || !m.jobs[4].Anew || m.jobs[3].Anew {
		t.Errorf("anew: %v, %d jobs", err, len(m.jobs))
	}
	m.node = "22.2.0" // in no list of a package tool
	if other, err := s.Rebuild(t.Context(), "mine"); err != nil || other.Digest == img.Digest {
		t.Errorf("with another Node inside: %s, %v", other.Digest, err)
	}
	if base, err := s.Find(t.Context(), "small"); err != nil || len(m.jobs) != 6 || m.jobs[3].Base.Digest != base.Digest {
		t.Errorf("%v, %d jobs", err, len(m.jobs))
	}
}

func TestANameMeansItsOwnEntryOnceThatIsBuilt(t *testing.T) {
	skiptest.WithoutRoot(t, "files of an image have owners")
	system := func(name string, aliases ...string) recipe {
		return recipe{Entry: Entry{Name: name, Aliases: aliases}, Stages: []stage{{Name: "files", Weight: 1, Run: func(_ context.Context, w *work) error {
			return os.MkdirAll(filepath.Join(w.root, "etc"), 0o755)
		}}}, Inspect: func(context.Context, *work) (contents, error) { return contents{}, nil }}
	}
	recipes, err := withEntries([]recipe{system("python", "other", "debian-12", "node-22", "ubuntu-24.04", "mcpgateway/skills-runtime:latest"), system("base")}, []entry.Entry{
		{Name: "skills-runtime", Base: "python", Steps: []entry.Step{{Title: "doing it"}}, Start: []string{"serve"}},
		{Name: "node", Base: "base", Aliases: []string{"node-lts"}, Steps: []entry.Step{{Title: "doing it"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(Options{Dir: t.TempDir()}, recipes)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Use(&maker{layer: layerOf(t, dirEntry("etc"), fileEntry("etc/mine"))})
	check := func(name, want string) {
		t.Helper()
		e, err := s.Resolve(name)
		img, ferr := s.Ensure(t.Context(), name)
		if err != nil || ferr != nil || e.Name != want || img.Name != want {
			t.Errorf("it means %q, %q; want %q; %v, %v", e.Name, img.Name, want, err, ferr)
		}
		all, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range all {
			if has := slices.Contains(st.Aliases, name); has != (st.Name == want) {
				t.Errorf("%s is listed with the aliases %q, and %s means %s", st.Name, st.Aliases, name, want)
			}
		}
		if all[2].Start[0] != "serve" {
			t.Errorf("the start command: %q", all[2].Start)
		}
	}
	build := func(name string) {
		t.Helper()
		if _, err := s.Ensure(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	const skills = "mcpgateway/skills-runtime:latest"
	for _, name := range []string{skills, "debian-12", "ubuntu-24.04", "node-22", "other"} {
		check(name, "python")
	}
	build("skills-runtime")
	check(skills, "skills-runtime")
	check("debian-12", "python")
	build("base")
	check("debian-12", "base")
	check("ubuntu-24.04", "base")
	check("node-22", "python")
	build("node")
	check("node-22", "node")
	check("other", "python")
	for range 8 { // the order is no accident
		all, err := s.List(t.Context())
		if err != nil || !slices.Equal(all[1].Aliases, []string{"debian-12", "ubuntu-24.04"}) || !slices.Equal(all[3].Aliases, []string{"node-lts", "node-22"}) {
			t.Fatalf("listed are %+v, %v", all, err)
		}
	}
	s.policy.Store(&Policy{Allowed: []string{"python", "node"}}) // what new sandboxes may not have takes no name
	check("debian-12", "python")
	check("node-22", "node")
}
