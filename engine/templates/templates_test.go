// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	both  = []access.Scope{access.SandboxesRead, access.SandboxesWrite}
	alice = access.Caller{Project: "default", Actor: "alice", Via: "test", Scopes: both, TokenID: "a"}
	bob   = access.Caller{Project: "other", Actor: "bob", Via: "test", Scopes: both, TokenID: "b"}
	carol = access.Caller{Project: "default", Actor: "carol", Via: "test", Scopes: both[:1], TokenID: "c"}
	admin = access.Caller{Project: "default", Actor: "admin", Via: "test", Scopes: []access.Scope{access.ServerAdmin}}
	chief = access.Caller{Project: "default", Actor: "chief", Via: "test", Scopes: []access.Scope{access.Admin}, TokenID: "d"}
)

type house struct {
	*enginetest.Server
	t *testing.T
}

func open(t *testing.T) *house {
	t.Helper()
	return with(t, templates.Options{Resolve: enginetest.Images{}.Resolve})
}

func with(t *testing.T, o templates.Options) *house {
	t.Helper()
	return &house{Server: enginetest.StartTemplates(t, t.TempDir(), o), t: t}
}

func (h *house) templates() *templates.Service { return h.Creator.Templates }

func (h *house) add(c access.Caller, name string, sp template.Spec) *template.Template {
	h.t.Helper()
	made, _, err := h.templates().Create(h.t.Context(), c, templates.Request{Name: name, Spec: sp})
	if err != nil {
		h.t.Fatal(err)
	}
	return made
}

// make makes a sandbox of what asks for a template, an image or neither.
func (h *house) make(c access.Caller, r engine.CreateRequest) *sandbox.Sandbox {
	h.t.Helper()
	s, _, err := h.Creator.Create(h.t.Context(), c, r)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func of(ref string) engine.CreateRequest {
	return engine.CreateRequest{Template: &sandbox.Template{Asked: ref}}
}

func (h *house) get(id sandbox.ID) *sandbox.Sandbox {
	h.t.Helper()
	s, err := h.Engine.Get(h.t.Context(), alice, string(id))
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// ready waits until it is known whether the sandbox's last start is ready.
func (h *house) ready(id sandbox.ID) *sandbox.Sandbox {
	h.t.Helper()
	h.Await(h.t, "the start command", func() bool { return h.get(id).Readiness() != nil })
	return h.get(id)
}

// run runs a command inside and returns what it prints.
func (h *house) run(box *sandbox.Sandbox, command string) string {
	h.t.Helper()
	var out bytes.Buffer
	res, err := h.Engine.Exec(h.t.Context(), alice, string(box.ID), engine.ExecRequest{Shell: command}, func(f sandbox.Frame) error {
		out.Write(f.Data)
		return nil
	})
	if err != nil || res.ExitCode != 0 {
		h.t.Fatalf("%s: %v, exit code %d\n%s", command, err, res.ExitCode, out.String())
	}
	return strings.TrimSpace(out.String())
}

func (h *house) events(id sandbox.ID, typ sandbox.EventType, pid string) (n int) {
	h.t.Helper()
	err := h.Store.View(h.t.Context(), func(tx store.Tx) error {
		page, _, err := tx.Events().List(store.EventQuery{Sandbox: id, ProcessID: pid, Types: []sandbox.EventType{typ}})
		n = len(page)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if fault.Of(err) != code {
		t.Errorf("%s: got %q (%v), want %q", what, fault.Of(err), err, code)
	}
}

func TestVersionsAreImmutable(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	first := h.add(alice, "web", template.Spec{Image: "node"})
	again, added, err := h.templates().Create(ctx, alice, templates.Request{Name: "web", Spec: template.Spec{Image: "node"}})
	if err != nil || added || again.ID != first.ID {
		t.Errorf("the same one again: got %v, %v, %v", again, added, err)
	}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			if _, _, err := h.templates().Create(ctx, alice, templates.Request{Name: "web", Spec: template.Spec{Image: "node", Description: fmt.Sprint(n)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	k, err := h.templates().List(ctx, alice)
	if err != nil || len(k.Templates) != 17 {
		t.Fatalf("got %d versions, %v", len(k.Templates), err)
	}
	seen := make(map[string]bool)
	for n, v := range k.Templates {
		want(t, "the version", v.Version, 17-n)
		seen[v.Spec.Description] = true
	}
	want(t, "different ones", len(seen), 17)
	got, err := h.templates().Get(ctx, alice, "web@1")
	if err != nil || got.ID != first.ID || got.Spec.Digest() != first.Spec.Digest() {
		t.Errorf("web@1: got %+v, %v", got, err)
	}
	if got, err = h.templates().Get(ctx, alice, "web"); err != nil || got.Version != 17 {
		t.Errorf("web: got %+v, %v", got, err)
	}
	for _, ref := range []string{"web@18", "web@0", "web@01", "web@x", "tmpl_x", "", "none"} {
		_, err := h.templates().Get(ctx, alice, ref)
		wantCode(t, "Get "+ref, err, fault.NotFound)
	}
	box := h.make(alice, of("web@17"))
	if err := h.templates().Delete(ctx, alice, "web@17"); err != nil {
		t.Fatal(err)
	}
	if got := h.get(box.ID); got.Template == nil || got.Template.Version != 17 {
		t.Errorf("the sandbox of a deleted version has %+v", got.Template)
	}
	if next := h.add(alice, "web", template.Spec{Image: "node", Description: "next"}); next.Version != 18 {
		t.Errorf("after a delete the next version is %d", next.Version)
	}
	if err := h.templates().Delete(ctx, alice, "web"); err != nil {
		t.Fatal(err)
	}
	_, err = h.templates().Get(ctx, alice, "web")
	wantCode(t, "Get of a deleted one", err, fault.NotFound)
}

func TestTemplatesOfProjectsAndOfTheServer(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	own := h.add(alice, "web", template.Spec{Image: "node"})
	for _, ref := range []string{"web", "web@1", own.ID} {
		_, err := h.templates().Get(ctx, bob, ref)
		wantCode(t, "Get by another project", err, fault.NotFound)
		wantCode(t, "Delete by another project", h.templates().Delete(ctx, bob, ref), fault.NotFound)
		_, err = h.templates().SetDefault(ctx, bob, ref, false, true)
		wantCode(t, "SetDefault by another project", err, fault.NotFound)
		_, _, err = h.Creator.Create(ctx, bob, of(ref))
		wantCode(t, "Create by another project", err, fault.NotFound)
	}
	shared := templates.Request{Name: "web", Server: true, Spec: template.Spec{Image: "python"}}
	_, _, err := h.templates().Create(ctx, alice, shared)
	wantCode(t, "one for all without the scope", err, fault.Denied)
	_, _, err = h.templates().Create(ctx, chief, shared)
	wantCode(t, "one for all by a project's administrator", err, fault.Denied)
	all, _, err := h.templates().Create(ctx, admin, shared)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.templates().Get(ctx, bob, "web"); err != nil || got.ID != all.ID {
		t.Errorf("the server's: got %v, %v", got, err)
	}
	if got, err := h.templates().Get(ctx, alice, "web"); err != nil || got.ID != own.ID {
		t.Errorf("the project's goes before the server's: got %v, %v", got, err)
	}
	wantCode(t, "Delete of the server's", h.templates().Delete(ctx, bob, "web"), fault.Denied)
	_, err = h.templates().SetDefault(ctx, bob, "web", false, true)
	wantCode(t, "the server's as a project's default", err, fault.Unsupported)
	if _, err = h.templates().SetDefault(ctx, alice, "web", false, true); err != nil {
		t.Error(err)
	}
	for _, sp := range []template.Spec{{Steps: []string{"true"}}, {Volumes: []template.Volume{{Volume: "v", Path: "/v"}}}} {
		_, _, err = h.templates().Create(ctx, admin, templates.Request{Name: "x", Server: true, Spec: sp})
		wantCode(t, "what belongs to a project, for all", err, fault.Invalid)
	}
	_, _, err = h.templates().Create(ctx, carol, templates.Request{Name: "x"})
	wantCode(t, "Create without the scope", err, fault.Denied)
	wantCode(t, "Delete without the scope", h.templates().Delete(ctx, carol, "web"), fault.Denied)
	_, err = h.templates().List(ctx, access.Caller{Project: "default"})
	wantCode(t, "List without a scope", err, fault.Denied)
}

func TestOrderOfChoice(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	chosen := func(r engine.CreateRequest) string {
		t.Helper()
		s := h.make(alice, r)
		return fmt.Sprintf("%s %s %s", s.Template.ChosenBy, s.Template.Name, s.Image)
	}
	want(t, "nothing is there", chosen(engine.CreateRequest{}), "fallback  python")
	want(t, "an image", chosen(engine.CreateRequest{Image: "node"}), "explicit  node")
	want(t, "an image by the old spelling", chosen(of("node")), "explicit  node")
	if _, _, err := h.templates().Create(ctx, admin, templates.Request{Name: "of-server", Server: true, Spec: template.Spec{Image: "node"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.templates().SetDefault(ctx, admin, "of-server", true, true); err != nil {
		t.Fatal(err)
	}
	want(t, "the server's default", chosen(engine.CreateRequest{}), "server of-server node")
	h.add(alice, "of-project", template.Spec{Image: "python"})
	if _, err := h.templates().SetDefault(ctx, alice, "of-project", false, true); err != nil {
		t.Fatal(err)
	}
	want(t, "the project's default", chosen(engine.CreateRequest{}), "project of-project python")
	h.add(alice, "for-pdf", template.Spec{Image: "node", ForSkills: []string{"pdf", "x"}})
	h.add(alice, "for-both", template.Spec{Image: "node", ForSkills: []string{"pdf", "csv"}})
	by := func(skills ...string) engine.CreateRequest {
		return engine.CreateRequest{Template: &sandbox.Template{Skills: skills}}
	}
	want(t, "by a skill, the first by name", chosen(by("pdf")), "skills for-both node")
	want(t, "by most skills", chosen(by("pdf", "x")), "skills for-pdf node")
	want(t, "by a skill of none", chosen(by("other")), "project of-project python")
	want(t, "explicitly", chosen(of("of-server")), "explicit of-server node")
	r := by("pdf")
	r.Image = "python"
	want(t, "an image beside skills", chosen(r), "explicit  python")
	_, _, err := h.Creator.Create(ctx, alice, of("of-server@2"))
	wantCode(t, "a version that is not there", err, fault.NotFound)
	_, _, err = h.Creator.Create(ctx, alice, of("nothing"))
	wantCode(t, "neither a template nor an image", err, fault.NotFound)
	if s := h.make(bob, engine.CreateRequest{}); s.Template.ChosenBy != sandbox.ChosenByServer {
		t.Errorf("another project gets %+v", s.Template)
	}

	// What is there under a key stays as it is, whatever would be chosen today.
	kept := h.make(alice, engine.CreateRequest{Key: "mine", Image: "node"})
	if again := h.make(alice, engine.CreateRequest{Key: "mine"}); again.ID != kept.ID {
		t.Errorf("the key gives %s, want %s", again.ID, kept.ID)
	}
	r = of("of-project")
	r.Key = "mine"
	_, _, err = h.Creator.Create(ctx, alice, r)
	wantCode(t, "another template for a key", err, fault.Exists)
	if err := h.templates().Delete(ctx, alice, "of-project"); err != nil {
		t.Fatal(err)
	}
	want(t, "after the default was deleted", chosen(engine.CreateRequest{}), "server of-server node")
}

func TestWhatTheRequestSaysGoesBefore(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.add(alice, "web", template.Spec{
		Image: "node", Limits: sandbox.Limits{CPU: 0.5, MemoryMB: 256}, Env: map[string]string{"A": "1", "B": "2"},
	})
	s := h.make(alice, of("web"))
	want(t, "limits", s.Limits, sandbox.Limits{CPU: 0.5, MemoryMB: 256}.Or(sandbox.DefaultLimits()))
	want(t, "env", s.Env, map[string]string{"A": "1", "B": "2"})
	r := of("web")
	r.Image, r.Limits.MemoryMB, r.Env = "python", 128, map[string]string{"B": "3", "C": "4"}
	s = h.make(alice, r)
	want(t, "limits", s.Limits, sandbox.Limits{CPU: 0.5, MemoryMB: 128}.Or(sandbox.DefaultLimits()))
	want(t, "env", s.Env, map[string]string{"A": "1", "B": "3", "C": "4"})
	want(t, "image", s.Image, "python")
	if got, err := h.templates().Get(t.Context(), alice, "web"); err != nil || got.Spec.Env["B"] != "2" {
		t.Errorf("the template became %+v, %v", got, err)
	}
}

func TestHostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, name := range []string{"", ":a", "a/b", "../a", "a..b", "a@1", "tmpl_x", "-a", "a b", "a\n", "ä", strings.Repeat("a", 65)} {
		_, _, err := h.templates().Create(t.Context(), alice, templates.Request{Name: name})
		wantCode(t, fmt.Sprintf("the name %q", name), err, fault.Invalid)
	}
	probe := func(p sandbox.Probe) template.Spec {
		return template.Spec{Start: sandbox.Start{Command: "true", Ready: p}}
	}
	for what, sp := range map[string]template.Spec{
		"a variable's name":         {Env: map[string]string{"A=B": "1"}},
		"a zero byte":               {Env: map[string]string{"A": "x\x00y"}},
		"no UTF-8":                  {Env: map[string]string{"A": "\xff"}},
		"a start with a zero":       {Start: sandbox.Start{Command: "x\x00"}},
		"a start that is too long":  {Start: sandbox.Start{Command: strings.Repeat("x", template.MaxCommand+1)}},
		"a probe of nothing":        {Start: sandbox.Start{Ready: sandbox.Probe{Port: 80}}},
		"a port":                    probe(sandbox.Probe{Port: 70000}),
		"a port below 0":            probe(sandbox.Probe{Port: -1}),
		"two probes":                probe(sandbox.Probe{Port: 80, Command: "true"}),
		"a probe with a clock only": probe(sandbox.Probe{Timeout: time.Second}),
		"a long probe":              probe(sandbox.Probe{Port: 80, Timeout: time.Hour}),
		"a probe below 0":           probe(sandbox.Probe{Port: 80, Interval: -1}),
		"an interval over its end":  probe(sandbox.Probe{Port: 80, Interval: time.Minute, Timeout: time.Second}),
		"limits":                    {Limits: sandbox.Limits{MemoryMB: 1}},
		"a mount":                   {Volumes: []template.Volume{{Volume: "v", Path: "relative"}}},
		"an empty step":             {Steps: []string{" "}},
		"a long Dockerfile":         {Dockerfile: strings.Repeat("#", template.MaxDockerfile+1)},
		"a Dockerfile and steps":    {Dockerfile: "FROM python\nRUN true", Steps: []string{"true"}},
		"a Dockerfile and an image": {Dockerfile: "FROM python\nRUN true", Image: "python"},
		"many contexts":             {Dockerfile: "FROM python\nRUN true", Contexts: make([]string, template.MaxContexts+1)},
		"many steps":                {Steps: strings.Split(strings.Repeat("x ", 65), " ")},
	} {
		_, _, err := h.templates().Create(t.Context(), alice, templates.Request{Name: "x", Spec: sp})
		wantCode(t, what, err, fault.Invalid)
	}
	_, _, err := h.templates().Create(t.Context(), alice, templates.Request{Name: "x", Spec: template.Spec{Image: "none"}})
	wantCode(t, "an image that is not there", err, fault.NotFound)
	k, err := h.templates().List(t.Context(), alice)
	if err != nil || len(k.Templates) != 0 {
		t.Errorf("there are %v, %v", k.Templates, err)
	}
}

// count is a start command that notes each of its starts, and stays.
const count = `echo started >> starts; exec sleep 1000`

func TestTheStartCommandRunsAtEachStart(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	h.add(alice, "web", template.Spec{Start: sandbox.Start{Command: count, Ready: sandbox.Probe{Command: "test -s /workspace/starts || test -s starts", Interval: 50 * time.Millisecond}}})
	s := h.make(alice, of("web"))
	if r := s.Readiness(); r == nil || !r.OK {
		t.Fatalf("after the create it is %+v", r)
	}
	first := s.StartProcess()
	p, err := h.Engine.Process(ctx, alice, string(s.ID), first)
	if err != nil || p.State != sandbox.ProcessRunning || p.User != sandbox.UserSandbox || p.Shell != count {
		t.Fatalf("its process is %+v, %v", p, err)
	}
	want(t, "starts", h.run(s, "cat starts"), "started")
	if _, err := h.Engine.Stop(ctx, alice, string(s.ID)); err != nil {
		t.Fatal(err)
	}
	if h.get(s.ID).Readiness() == nil {
		t.Error("what became of the last start is forgotten when it stops")
	}
	if _, err := h.Engine.Start(ctx, alice, string(s.ID)); err != nil {
		t.Fatal(err)
	}
	s = h.ready(s.ID)
	if s.StartProcess() == first || !s.Readiness().OK {
		t.Errorf("after a start its process is %s as before, or it is not ready: %+v", first, s.Readiness())
	}
	if _, err := h.Engine.Restart(ctx, alice, string(s.ID)); err != nil {
		t.Fatal(err)
	}
	s = h.ready(s.ID)
	if _, err := h.Engine.Pause(ctx, alice, string(s.ID)); err != nil && !fault.Is(err, fault.Unsupported) {
		t.Fatal(err)
	}
	if _, err := h.Engine.Resume(ctx, alice, string(s.ID)); err != nil && !fault.Is(err, fault.Unsupported) {
		t.Fatal(err)
	}
	want(t, "starts, after three", h.run(s, "wc -l < starts"), "3")
	forks, err := h.Engine.Fork(ctx, alice, string(s.ID), engine.ForkRequest{})
	if err != nil {
		t.Fatal(err)
	}
	fork := h.ready(forks[0].ID)
	want(t, "starts of a fork", h.run(fork, "wc -l < starts"), "4")
	want(t, "its template", fork.Template.Name, "web")
}

func TestAnImagesStartRunsWhereNoTemplateSaysOne(t *testing.T) {
	t.Parallel()
	h := with(t, templates.Options{Resolve: func(name string) (image.Entry, error) {
		e, err := enginetest.Images{}.Resolve(name)
		if e.Name == "node" {
			e.Start = []string{"sh", "-c", `echo "$@" >>starts; exec sleep 1000`, "it's", "of the image's", `$HOME "a"`}
		}
		return e, err
	}})
	ctx := t.Context()
	starts := func(s *sandbox.Sandbox, lines ...string) {
		t.Helper()
		if r := h.ready(s.ID).Readiness(); !r.OK {
			t.Errorf("it is not ready: %+v", r)
		}
		last := ""
		h.Await(t, fmt.Sprintf("%d starts", len(lines)), func() bool {
			last = h.run(s, "cat starts 2>/dev/null || true")
			return strings.Count(last, "\n")+1 >= len(lines) && last != ""
		})
		want(t, "started", last, strings.Join(lines, "\n"))
	}
	const ofImage = `of the image's $HOME "a"`

	s := h.make(alice, engine.CreateRequest{Image: "node"})
	starts(s, ofImage)
	want(t, "its template", s.Template.ID, "")
	if _, err := h.Engine.Restart(ctx, alice, string(s.ID)); err != nil {
		t.Fatal(err)
	}
	starts(s, ofImage, ofImage)
	snap, err := h.Engine.CreateSnapshot(ctx, alice, string(s.ID), engine.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "of a snapshot", h.make(alice, engine.CreateRequest{From: string(snap.ID)}).StartProcess(), "")
	want(t, "of another image", h.make(alice, engine.CreateRequest{Image: "python"}).StartProcess(), "")
	want(t, "of the default image", h.make(alice, engine.CreateRequest{}).StartProcess(), "")

	h.add(alice, "own", template.Spec{Image: "node", Start: sandbox.Start{Command: count}})
	starts(h.make(alice, of("own")), "started")
	h.add(alice, "plain", template.Spec{Image: "node"})
	s = h.make(alice, of("plain"))
	starts(s, ofImage)
	want(t, "its template", s.Template.Name, "plain")
	starts(h.make(alice, of("node")), ofImage) // an image's name where a template's may stand

	r := engine.CreateRequest{Image: "node", Key: "kept"}
	first := h.make(alice, r)
	starts(first, ofImage)
	want(t, "the sandbox of the key", h.make(alice, r).StartProcess(), first.StartProcess())
	starts(first, ofImage)
	_, _, err = h.Creator.Create(ctx, alice, engine.CreateRequest{Image: "nosuch"})
	wantCode(t, "an unknown image", err, fault.NotFound)
}

func TestTheStartCommandBelongsToNoServer(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.add(alice, "web", template.Spec{Start: sandbox.Start{Command: count, Ready: sandbox.Probe{Command: "test -s starts", Interval: 50 * time.Millisecond}}})
	s := h.make(alice, of("web"))
	pid := s.StartProcess()
	h.Restart()
	want(t, "starts after another server came", h.run(s, "wc -l < starts"), "1")
	if got := h.get(s.ID); got.StartProcess() != pid || !got.Readiness().OK {
		t.Errorf("the next server knows %s, %+v", got.StartProcess(), got.Readiness())
	}
	h.Await(t, "the commands to be adopted", func() bool {
		p, err := h.Engine.Process(t.Context(), alice, string(s.ID), pid)
		return err == nil && p.State == sandbox.ProcessRunning
	})
	want(t, "rows of it", h.events(s.ID, sandbox.EventExec, pid), 1)
}

// A server that ends at any point of a start leaves it to the next one, which begins the command once.
func TestAStartThatWasBrokenOffGoesOn(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"start.up", "start.begun"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			reached, on := make(chan struct{}), make(chan struct{})
			h := with(t, templates.Options{Checkpoint: func(at string) {
				if at == point {
					once.Do(func() { close(reached); <-on })
				}
			}})
			h.add(alice, "web", template.Spec{Start: sandbox.Start{Command: count, Ready: sandbox.Probe{Command: "test -s starts", Interval: 50 * time.Millisecond}}})
			r := of("web")
			r.Key = "web"
			got := make(chan error, 1)
			go func() {
				_, _, err := h.Creator.Create(t.Context(), alice, r)
				got <- err
			}()
			<-reached
			time.AfterFunc(100*time.Millisecond, func() { close(on) })
			h.Restart()
			<-got
			s := h.ready(h.make(alice, r).ID)
			if !s.Readiness().OK {
				t.Errorf("it is %+v", s.Readiness())
			}
			want(t, "starts", h.run(s, "wc -l < starts"), "1")
		})
	}
}

func TestTheStartCommandLetsItsSandboxIdle(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.add(alice, "web", template.Spec{Start: sandbox.Start{Command: count}})
	r := of("web")
	r.IdleTimeout = new(time.Second)
	s := h.make(alice, r)
	h.Await(t, "the idle stop", func() bool { return h.get(s.ID).State == sandbox.Stopped })
	want(t, "why", h.get(s.ID).StopCause, sandbox.CauseIdle)
	h.run(s, "true") // starts it
	h.ready(s.ID)
	h.Restart() // the next server adopts it
	h.Await(t, "the idle stop after another server came", func() bool { return h.get(s.ID).State == sandbox.Stopped })
}

func TestReadyProbes(t *testing.T) {
	t.Parallel()
	h := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // of the memory runtime the host's ports are the sandbox's
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	quick := sandbox.Probe{Interval: 50 * time.Millisecond, Timeout: 300 * time.Millisecond}
	probe := func(p sandbox.Probe) sandbox.Probe { p.Interval, p.Timeout = quick.Interval, quick.Timeout; return p }
	for n, row := range []struct {
		start  sandbox.Start
		ok     bool
		reason string
		output string
	}{
		{sandbox.Start{Command: "sleep 1000", Ready: sandbox.Probe{Port: port}}, true, "", ""},
		{sandbox.Start{Command: "true", Ready: sandbox.Probe{Port: port}}, true, "", ""}, // it ended well: it may have begun something
		{sandbox.Start{Command: "echo hello; exec sleep 1000", Ready: probe(sandbox.Probe{Port: 1})}, false, "nothing listens on port 1 after 300ms", "hello\n"},
		{sandbox.Start{Command: "echo bye >&2; exit 3", Ready: sandbox.Probe{Port: 1}}, false, "the start command ended with exit code 3", "bye\n"},
		{sandbox.Start{Command: "sleep 1000", Ready: probe(sandbox.Probe{Command: "false"})}, false, "the ready command has not ended with 0 after 300ms", ""},
		{sandbox.Start{Command: "sleep 1000", Ready: probe(sandbox.Probe{Command: "sleep 1000"})}, false, "the ready command has not ended with 0 after 300ms", ""},
		{sandbox.Start{Command: "echo no; exit 4", Ready: sandbox.Probe{Command: "false"}}, false, "the start command ended with exit code 4", "no\n"},
	} {
		name := fmt.Sprintf("p%d", n)
		h.add(alice, name, template.Spec{Start: row.start})
		s := h.make(alice, of(name))
		r := s.Readiness()
		if r == nil || r.OK != row.ok || r.Reason != row.reason || r.Output != row.output || s.State != sandbox.Running {
			t.Errorf("%+v: it is %s, %+v", row.start, s.State, r)
		}
		want(t, "events", h.events(s.ID, sandbox.EventReady, s.StartProcess()), 1)
	}
}

func TestASnapshotBecomesATemplate(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	box := h.make(alice, engine.CreateRequest{Image: "node", Env: map[string]string{"A": "1", "B": "2"}, Limits: sandbox.Limits{MemoryMB: 128}})
	h.run(box, "echo kept > file")
	snap, err := h.Engine.CreateSnapshot(ctx, alice, string(box.ID), engine.SnapshotRequest{Name: "good"})
	if err != nil {
		t.Fatal(err)
	}
	r := templates.Request{Name: "kept", From: string(box.ID) + "/good", Spec: template.Spec{Env: map[string]string{"B": "3"}}}
	_, _, err = h.templates().Create(ctx, bob, r)
	wantCode(t, "by another project", err, fault.NotFound)
	if _, _, err := h.templates().Create(ctx, alice, r); err != nil {
		t.Fatal(err)
	}
	s := h.make(alice, of("kept"))
	want(t, "its disk", h.run(s, "cat file"), "kept")
	want(t, "its image", s.Image, "node")
	want(t, "its variables", s.Env, map[string]string{"A": "1", "B": "3"})
	want(t, "its memory", s.Limits.MemoryMB, 128)
	want(t, "its parent", s.Parent, snap.ID)

	wantCode(t, "DeleteSnapshot of its disk", h.Creator.DeleteSnapshot(ctx, alice, "", string(snap.ID)), fault.Conflict)
	_, err = h.Creator.CreateSnapshot(ctx, alice, string(box.ID), engine.SnapshotRequest{Name: "good", Replace: true})
	wantCode(t, "another one in its place", err, fault.Conflict)
	wantCode(t, "DeleteSnapshot by another project", h.Creator.DeleteSnapshot(ctx, bob, "", string(snap.ID)), fault.NotFound)
	if err := h.templates().Delete(ctx, alice, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := h.Creator.DeleteSnapshot(ctx, alice, "", string(snap.ID)); err != nil {
		t.Error("the snapshot is the caller's again:", err)
	}
	bare, err := h.Engine.CreateSnapshot(ctx, alice, string(box.ID), engine.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = h.templates().Create(ctx, alice, templates.Request{Name: "bare", From: string(bare.ID)})
	wantCode(t, "one without a name", err, fault.Unsupported)
}

// The memory runtime has no root, so that each step fails; test/script has steps that succeed.
func TestAStepThatFailsIsTold(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	made := h.add(alice, "bad", template.Spec{Steps: []string{"true", "false"}})
	want(t, "at first", made.Status, template.Building)
	var got *template.Template
	h.Await(t, "the build", func() bool {
		var err error
		if got, err = h.templates().Get(ctx, alice, "bad"); err != nil {
			t.Fatal(err)
		}
		return got.Status != template.Building
	})
	want(t, "what failed", got.Failure, &template.Failure{Step: 1, Command: "true", Reason: "user: \"root\" is not allowed in this sandbox"})
	_, _, err := h.Creator.Create(ctx, alice, of("bad"))
	wantCode(t, "Create of one that failed", err, fault.State)
	again, added, err := h.templates().Create(ctx, alice, templates.Request{Name: "bad", Spec: made.Spec})
	if err != nil || !added || again.Version != 2 {
		t.Errorf("one that failed is built anew: got %+v, %v, %v", again, added, err)
	}
	h.Await(t, "the sandboxes to be gone", func() bool {
		page, err := h.Engine.List(ctx, alice, engine.SandboxesRequest{})
		return err == nil && len(page.Items) == 0
	})
	if err := h.templates().Delete(ctx, alice, "bad"); err != nil {
		t.Fatal(err)
	}
}

func TestABuildThatTheServerLeftFails(t *testing.T) {
	t.Parallel()
	var once sync.Once
	reached := make(chan struct{})
	h := with(t, templates.Options{Checkpoint: func(at string) {
		if at == "template.sandbox" {
			once.Do(func() { close(reached) })
		}
	}})
	made := h.add(alice, "slow", template.Spec{Steps: []string{"sleep 1000"}})
	<-reached
	h.Restart()
	h.Await(t, "the word of the next server", func() bool {
		got, err := h.templates().Get(t.Context(), alice, made.ID)
		return err == nil && got.Status == template.Failed
	})
	h.Await(t, "the sandbox to be gone", func() bool {
		page, err := h.Engine.List(t.Context(), alice, engine.SandboxesRequest{})
		return err == nil && len(page.Items) == 0
	})
}

func TestTheConfigurationsTemplates(t *testing.T) {
	t.Parallel()
	o := templates.Options{Resolve: enginetest.Images{}.Resolve, Default: "std", Configured: map[string]template.Spec{"std": {Image: "node", Env: map[string]string{"A": "1"}}}}
	h := with(t, o)
	ctx := t.Context()
	s := h.make(bob, engine.CreateRequest{})
	if s.Template.ChosenBy != sandbox.ChosenByServer || s.Template.Name != "std" || s.Template.Version != 1 {
		t.Errorf("it is made of %+v", s.Template)
	}
	wantCode(t, "Delete", h.templates().Delete(ctx, admin, "std"), fault.Conflict)
	h.Restart()
	if got, err := h.templates().Get(ctx, bob, "std"); err != nil || got.Version != 1 || got.ID != s.Template.ID {
		t.Errorf("as it was, it is %+v, %v", got, err)
	}
	o.Configured["std"] = template.Spec{Image: "python"}
	h.Restart()
	if got, err := h.templates().Get(ctx, bob, "std"); err != nil || got.Version != 2 {
		t.Errorf("changed, it is %+v, %v", got, err)
	}
	delete(o.Configured, "std")
	h.Restart()
	_, err := h.templates().Get(ctx, bob, "std")
	wantCode(t, "Get of what was taken out", err, fault.NotFound)
}
