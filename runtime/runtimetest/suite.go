// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Harness is what a driver's test gives to the suite.
type Harness struct {
	// Open opens the driver, each time over the same instances: calling it again
	// after Close is a restart of the server. Each test gets a harness of its own.
	Open func(t *testing.T) runtime.Driver
	// Image has Python 3, bash and coreutils.
	Image runtime.Image
	// Must are features that Probe may not refuse here.
	Must []runtime.Feature
	// Lacks are features that the driver has on no host. Probe must refuse them; a test that needs
	// one is not begun, and does not count as skipped.
	Lacks []runtime.Feature
	// Tried are tests of Isolation and Neighbours that are run though Probe refuses the feature: of what holds all the
	// same. What does not is in Otherwise, or is not tried.
	Tried []string
	// Otherwise are attempts that end otherwise here than the suite says, by their names.
	Otherwise map[string]Otherwise
	// Disk are the directories that a disk has; nil: all that a sandbox sees.
	Disk []string
	// Sizes: a volume is made of the size of its limit by somebody else, whose thing it is to hold it to that.
	Sizes bool
	// Coarse is why snapshots keep times to the second, no attributes of users, and what else an
	// image of a container is known to lack; "": they keep all. It is printed where it counts.
	Coarse string
}

// Otherwise is what comes of an attempt on a driver whose kernel or whose maker refuses in its own way.
type Otherwise struct {
	Want string // outcomes as the suite writes them, in place of its own; … in one stands for any text
	Why  string
}

// Run runs the whole suite but for the groups in without, and the tests of volumes in it
// ("Volumes/AnyWhere"), of which another run of the same code tests all. make gives each test a new harness, with a data directory of its own.
func Run(t *testing.T, make func(t *testing.T) Harness, without ...string) {
	for _, g := range []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"Probe", probe},
		{"Lifecycle", lifecycle},
		{"Restart", restart},
		{"Limits", limits},
		{"Pause", pauses},
		{"Resize", resizes},
		{"Meter", meters},
		{"Snapshots", snapshots},
		{"Volumes", volumes},
		{"Network", network},
		{"Changes", tracks},
		{"Watches", watches},
		{"Users", users},
		{"Accounts", accounts},
		{"Sudo", sudos},
		{"Told", told},
		{"Isolation", isolation},
		{"Neighbours", neighbours},
		{"Concurrency", concurrency},
	} {
		if slices.Contains(without, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			s := &suite{Harness: make(t), without: without}
			s.driver = s.Open(t)
			t.Cleanup(func() {
				s.removeAll(t) // also what a test that failed left
				if err := s.driver.Close(); err != nil {
					t.Errorf("close the driver: %v", err)
				}
			})
			g.run(t, s)
		})
	}
}

// suite is one group's harness with its driver open.
type suite struct {
	Harness
	driver  runtime.Driver
	without []string
}

// removeAll removes every instance, snapshot and volume that the driver knows.
func (s *suite) removeAll(t *testing.T) {
	ctx := context.Background() // the test's own is done
	list, err := s.driver.List(ctx)
	if err != nil {
		t.Errorf("List: %v", err)
	}
	for _, h := range list {
		i, err := s.driver.Open(ctx, h)
		if err == nil {
			err = i.Remove(ctx)
		}
		if err != nil {
			t.Errorf("remove %s: %v", h.ID, err)
		}
	}
	if d, ok := s.driver.(runtime.Snapshotter); ok {
		removeEach(t, "snapshot", d.Snapshots, d.RemoveSnapshot)
	}
	if d, ok := s.driver.(runtime.Volumer); ok {
		removeEach(t, "volume", d.Volumes, d.RemoveVolume)
	}
}

func removeEach(t *testing.T, what string, list func(context.Context) ([]sandbox.ID, error), remove func(context.Context, sandbox.ID) error) {
	ids, err := list(context.Background())
	for _, id := range ids {
		if err == nil {
			err = remove(context.Background(), id)
		}
	}
	if err != nil {
		t.Errorf("remove each %s: %v", what, err)
	}
}

// has reports whether the driver says that it can.
func (s *suite) has(t *testing.T, f runtime.Feature) bool {
	t.Helper()
	caps, err := s.driver.Probe(t.Context())
	if err != nil {
		t.Fatalf("Probe: %v", err)
	}
	reason, known := caps[f]
	return known && reason == nil
}

// rooted reports whether root's changes of the image are on the disk.
func (s *suite) rooted(t *testing.T) bool {
	t.Helper()
	return s.Disk == nil && s.has(t, runtime.RootUser)
}

// onDisk reports whether a path is on the disk.
func (s *suite) onDisk(path string) bool {
	return s.Disk == nil || slices.ContainsFunc(s.Disk, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// rounds returns how often something is done with a snapshot: less often where each copies a disk, but for campaigns.
func (s *suite) rounds(t *testing.T, cheap, dear int) int {
	t.Helper()
	if s.has(t, runtime.CheapSnapshots) || os.Getenv("SANDPIT_SOAK") == "1" {
		return cheap
	}
	return dear
}

// need skips what this host cannot do, unless the driver must.
func (s *suite) need(t *testing.T, f runtime.Feature) {
	t.Helper()
	if s.has(t, f) {
		return
	}
	caps, err := s.driver.Probe(t.Context())
	if err != nil {
		t.Fatalf("Probe: %v", err)
	}
	reason := caps[f]
	if slices.Contains(s.Must, f) {
		t.Fatalf("the driver must have %s on this host, and says: %v", f, reason)
	}
	if slices.Contains(s.Lacks, f) {
		t.Attr("lacks", string(f)) // for internal/testgate, which counts skips
	}
	t.Skipf("the driver has no %s here: %v", f, reason)
}

// tries is need of the feature isolation, but for those tests that are tried without it. It returns whether a test is run.
func (s *suite) tries(t *testing.T) func(name string) bool {
	t.Helper()
	if s.has(t, runtime.Isolation) || len(s.Tried) == 0 {
		s.need(t, runtime.Isolation)
		return func(string) bool { return true }
	}
	return func(name string) bool { return slices.Contains(s.Tried, name) }
}

// spec is a small sandbox.
func (s *suite) spec() runtime.Spec {
	return runtime.Spec{
		ID: sandbox.NewID(), Image: s.Image, Hostname: "box",
		Limits: sandbox.Limits{CPU: 1, MemoryMB: 256, DiskMB: 256, Pids: 64},
	}
}

// create makes an instance that is removed with the test.
func (s *suite) create(t *testing.T, spec runtime.Spec) *box {
	t.Helper()
	b := s.createFor(t, spec)
	b.removeLater()
	return b
}

// createFor makes an instance that outlives the server's end in a test: see reopen.
func (s *suite) createFor(t *testing.T, spec runtime.Spec) *box {
	t.Helper()
	i, err := s.driver.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return &box{t: t, Instance: i, agent: agent.NewClient(i.Dial), otherwise: s.Otherwise}
}

// removeLater has it removed with the test.
func (b *box) removeLater() {
	b.t.Cleanup(func() {
		if err := b.Remove(context.Background()); err != nil {
			b.t.Errorf("Remove: %v", err)
		}
	})
}

// reopen ends the server, and gives an instance of createFor as the next one has it.
func (s *suite) reopen(t *testing.T, b *box) *box {
	t.Helper()
	h := b.Handle()
	if err := s.driver.Close(); err != nil {
		t.Fatal(err)
	}
	s.driver = s.Open(t)
	i, err := s.driver.Open(t.Context(), h)
	if err != nil {
		t.Fatalf("Open after the restart: %v", err)
	}
	again := &box{t: t, Instance: i, agent: agent.NewClient(i.Dial), otherwise: s.Otherwise}
	again.removeLater()
	return again
}

// box is an instance with its agent.
type box struct {
	t *testing.T
	runtime.Instance
	agent     *agent.Client
	otherwise map[string]Otherwise
}

// outcome is a command's whole result.
type outcome struct {
	sandbox.Result
	Stdout, Stderr string
}

// run runs shell text as the sandbox's user and fails the test only when the
// command could not be run at all.
func (b *box) run(shell string) outcome { return b.exec(agent.Command{Shell: shell}) }

// asRoot runs shell text as the sandbox's own root.
func (b *box) asRoot(shell string) outcome {
	return b.exec(agent.Command{Shell: shell, User: "root"})
}

func (b *box) exec(c agent.Command) outcome {
	b.t.Helper()
	o, err := b.tryExec(b.t.Context(), c)
	if err != nil {
		b.t.Fatalf("run %q: %v", c.Shell, err)
	}
	return o
}

func (b *box) tryExec(ctx context.Context, c agent.Command) (outcome, error) {
	if c.ID == "" {
		c.ID = sandbox.NewProcessID()
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	p, err := b.agent.Start(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = p.Close() }()
	return collect(ctx, p)
}

func collect(ctx context.Context, p *agent.Process) (outcome, error) {
	var stdout, stderr strings.Builder
	for {
		f, err := p.Next(ctx)
		if err == io.EOF { // and not a broken connection, which may wrap it
			return outcome{Result: p.Result(), Stdout: stdout.String(), Stderr: stderr.String()}, nil
		}
		if err != nil {
			return outcome{}, err
		}
		if f.Stream == sandbox.Stderr {
			stderr.Write(f.Data)
		} else {
			stdout.Write(f.Data)
		}
	}
}

// ok runs shell text that must succeed, and gives its output without the last
// line's end.
func (b *box) ok(shell string) string {
	b.t.Helper()
	o := b.run(shell)
	if o.ExitCode != 0 {
		b.t.Fatalf("%q: exit code %d (%s), stdout %q, stderr %q", shell, o.ExitCode, o.Cause, o.Stdout, o.Stderr)
	}
	return strings.TrimSuffix(o.Stdout, "\n")
}

// wantCode fails unless err has the code.
func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != code {
		t.Errorf("%s: got %v (code %q), want code %q", what, err, got, code)
	}
}
