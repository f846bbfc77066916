// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/entry"
	"sandpit.dev/sandbox"
)

// work is one build. It belongs to one goroutine.
type work struct {
	s     *Service
	job   image.Job
	host  Host
	chain []string // of the steps, see entry.Chain

	box  sandbox.ID // its sandbox; "" while there is none
	up   bool       // the sandbox runs
	kept sandbox.ID // the snapshot of the last step; "" while there is none
	down []func()
}

// Build implements [image.Builder].
func (s *Service) Build(ctx context.Context, j image.Job) (*image.Built, error) {
	w := &work{s: s, job: j, chain: entry.Chain(j.Base.Digest, j.Steps)}
	made, err := w.build(ctx)
	if err != nil {
		w.close()
		return nil, err
	}
	return made, nil
}

func (w *work) build(ctx context.Context) (*image.Built, error) {
	if w.s.engine.Defaults().ForbidRoot {
		return nil, fault.New(fault.Unsupported, "the steps of an image run as the root of a sandbox, and this server lets nothing do that").
			WithRemedy("set allow_root, or import the image from where it can be built")
	}
	w.job.Report("waiting", "waiting for other builds", 0)
	for _, wait := range []func() (bool, error){w.awaitSweep(ctx), w.awaitSlot(ctx)} {
		if ok, err := wait(); !ok {
			return nil, err
		}
	}
	ctx, leave, err := w.s.engine.Enter(ctx, caller(), access.SandboxesWrite)
	if err != nil {
		return nil, err
	}
	w.down = append(w.down, leave)
	if w.host, err = w.s.o.Host(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the settings of this host's package tools cannot be read")
	}
	if err := w.reach(ctx); err != nil {
		return nil, err
	}
	first, err := w.resume(ctx)
	if err != nil {
		return nil, err
	}
	for i := first; i < len(w.job.Steps); i++ {
		if err := w.step(ctx, i); err != nil {
			return nil, cause(ctx, err)
		}
		w.s.o.Checkpoint("build.step")
	}
	made, err := w.inspect(ctx)
	if err != nil {
		return nil, cause(ctx, err)
	}
	if err := w.s.prune(ctx); err != nil {
		w.s.o.Logger.Warn("old steps of builds cannot be deleted", "error", err)
	}
	return made, nil
}

// cause returns why ctx ended where that is why something failed.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (w *work) awaitSweep(ctx context.Context) func() (bool, error) {
	return func() (bool, error) {
		select {
		case <-w.s.swept:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (w *work) awaitSlot(ctx context.Context) func() (bool, error) {
	return func() (bool, error) {
		select {
		case w.s.slots <- struct{}{}:
			w.down = append(w.down, func() { <-w.s.slots })
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// close deletes the sandbox and releases what the build holds. It may be called twice.
func (w *work) close() {
	if w.box != "" {
		ctx, cancel := context.WithTimeout(context.Background(), tidyBound)
		defer cancel()
		if err := w.s.engine.Delete(ctx, caller(), string(w.box)); err != nil && !fault.Is(err, fault.NotFound) {
			w.s.o.Logger.Warn("the sandbox of a build cannot be deleted now; the next start of the server does it", "sandbox", w.box, "error", err)
		}
		w.box = ""
	}
	for i := len(w.down) - 1; i >= 0; i-- {
		w.down[i]()
	}
	w.down = nil
}

// resume makes the sandbox, of the last step that is kept or else of the base, and returns the step
// that comes next.
func (w *work) resume(ctx context.Context) (int, error) {
	var all []*sandbox.Snapshot
	if !w.job.Anew {
		var err error
		if all, err = w.s.steps(ctx); err != nil {
			return 0, err
		}
	}
	now := w.s.engine.Now()
	byName := make(map[string]*sandbox.Snapshot)
	for _, snap := range all {
		if snap.ImageDigest == w.job.Base.Digest && now.Sub(snap.CreatedAt) < keepSteps && byName[snap.Name] == nil {
			byName[snap.Name] = snap
		}
	}
	for i := len(w.chain) - 1; i >= 0; i-- {
		snap := byName[stepName(w.chain[i])]
		if snap == nil {
			continue
		}
		err := w.create(ctx, engine.CreateRequest{From: string(snap.ID)})
		if fault.Is(err, fault.NotFound) {
			continue // it was deleted meanwhile
		}
		if err == nil {
			w.kept = snap.ID
			fmt.Fprintf(w.job.Log, "# %d of %d steps are kept from an earlier build\n", i+1, len(w.chain))
		}
		return i + 1, err
	}
	return 0, w.create(ctx, engine.CreateRequest{Image: w.job.Base.Name})
}

// stepName is the name of the snapshot of a step.
func stepName(hash string) string { return "step-" + hash }

func (w *work) create(ctx context.Context, r engine.CreateRequest) error {
	w.job.Report("sandbox", "making the sandbox of the build", 0)
	var never time.Duration
	r.Limits = w.s.limits()
	r.IdleTimeout, r.TTL = &never, lifetime
	r.Env = map[string]string{}
	r.Metadata = map[string]string{"image": w.job.Name}
	r.Network = &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}
	if w.networked() {
		r.Network = &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowPresets: w.job.Presets, AllowDomains: w.job.Domains}
		r.Secrets = make(map[string]secrets.Request)
		for name, value := range w.host.Variables {
			if strings.Contains(value, "@") { // then it may have a password in it
				r.Secrets[name] = secrets.Request{Name: name, Value: value}
			}
		}
	}
	made, _, err := w.s.engine.Create(ctx, caller(), r)
	if err != nil {
		return err
	}
	w.box, w.up = made.ID, true
	if made.ImageDigest != w.job.Base.Digest {
		return fault.New(fault.Conflict, "the image %q, with which this one begins, was built anew meanwhile", w.job.Base.Name).WithRemedy("build it again")
	}
	return nil
}

// reach has the job name hosts in place of those presets of package tools that stand for none in its base and on this
// host: those of the server's default image, if it has the tool. A step may install it.
func (w *work) reach(ctx context.Context) error {
	hosts := func(image string) (map[string][]string, error) {
		all, _, err := w.s.engine.Presets(ctx, caller(), image)
		of := make(map[string][]string)
		for _, p := range all {
			for _, d := range p.Domains {
				of[p.Name] = append(of[p.Name], d.Domain)
			}
		}
		return of, err
	}
	here, err := hosts(w.job.Base.Name)
	if err != nil || !slices.ContainsFunc(w.job.Presets, func(name string) bool { return here[name] == nil }) {
		return err
	}
	there, err := hosts("")
	if err != nil {
		return err
	}
	var presets []string
	domains := slices.Clone(w.job.Domains)
	for _, name := range w.job.Presets {
		if here[name] == nil && there[name] != nil {
			domains = append(domains, there[name]...)
		} else {
			presets = append(presets, name)
		}
	}
	w.job.Presets, w.job.Domains = presets, domains
	return nil
}

func (w *work) networked() bool { return len(w.job.Presets)+len(w.job.Domains) > 0 }

// Where the settings of the host are, for as long as a build's sandbox is up: what is below /run is not
// part of an image.
const (
	settings    = "/run/sandpit-build"
	authorities = settings + "/authorities.pem"
	aptSettings = settings + "/apt.conf"
)

// variables are those of a step's commands.
func (w *work) variables(step map[string]string) map[string]string {
	env := map[string]string{"DEBIAN_FRONTEND": "noninteractive", "PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
	if w.networked() {
		for name, value := range w.host.Variables {
			if !strings.Contains(value, "@") { // the others are secrets of the sandbox
				env[name] = value
			}
		}
		env["PIP_RETRIES"] = "5"
		env["APT_CONFIG"] = aptSettings
		if len(w.host.Authorities) > 0 {
			for _, name := range []string{"SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"} {
				env[name] = authorities
			}
		}
	}
	maps.Copy(env, step)
	return env
}

// ready brings the sandbox up with the host's settings in it.
func (w *work) ready(ctx context.Context, files []entry.File) error {
	if !w.up {
		if _, err := w.s.engine.Start(ctx, caller(), string(w.box)); err != nil {
			return err
		}
		w.up = true
	}
	all := files
	if w.networked() {
		apt := "Acquire::Retries \"3\";\nAcquire::http::Timeout \"60\";\nAcquire::https::Timeout \"60\";\n"
		if len(w.host.Authorities) > 0 {
			apt += fmt.Sprintf("Acquire::https::CAInfo %q;\n", authorities)
			all = append([]entry.File{{Path: authorities, Content: w.host.Authorities, Mode: 0o644, User: sandbox.UserRoot}}, all...)
		}
		all = append([]entry.File{{Path: aptSettings, Content: []byte(apt), Mode: 0o644, User: sandbox.UserRoot}}, all...)
	}
	if len(all) == 0 {
		return nil
	}
	client, release, err := w.s.engine.Connect(ctx, caller(), access.SandboxesWrite, string(w.box), "a build")
	if err != nil {
		return err
	}
	defer release()
	for _, f := range all {
		if _, _, err := client.WriteFile(ctx, f.Path, bytes.NewReader(f.Content), sandbox.WriteFileOptions{
			User: f.User, Mode: f.Mode, Size: int64(len(f.Content)), MakeParents: true,
		}); err != nil {
			fe := fault.As(err)
			return fault.Wrap(fe.Code, err, "the file %s cannot be written: %s", f.Path, fe.Message)
		}
	}
	return nil
}

// step does one step and keeps what it made.
func (w *work) step(ctx context.Context, i int) error {
	s := w.job.Steps[i]
	n := len(w.job.Steps)
	w.job.Report(fmt.Sprintf("step %d of %d", i+1, n), s.Title, float64(i)/float64(n+1))
	fmt.Fprintf(w.job.Log, "# step %d of %d: %s\n", i+1, n, s.Title)
	if err := w.ready(ctx, s.Files); err != nil {
		return err
	}
	for _, argv := range s.Commands {
		if err := w.run(ctx, s, argv); err != nil {
			return err
		}
	}
	snap, err := w.keep(ctx, stepName(w.chain[i]))
	if err != nil {
		return err
	}
	w.kept = snap.ID
	return nil
}

// keep ends what a step left running, and keeps the disk.
func (w *work) keep(ctx context.Context, name string) (*sandbox.Snapshot, error) {
	if err := w.s.engine.KillAll(ctx, caller(), string(w.box)); err != nil {
		return nil, err
	}
	if _, err := w.s.engine.Stop(ctx, caller(), string(w.box)); err != nil {
		return nil, err
	}
	w.up = false
	return w.s.engine.CreateSnapshot(ctx, caller(), string(w.box), engine.SnapshotRequest{Name: name, Replace: true})
}

// run runs one command of a step.
func (w *work) run(ctx context.Context, s entry.Step, argv []string) error {
	timeout := s.Timeout
	if most := w.s.engine.Defaults().MaxCommandTimeout; timeout <= 0 || timeout > most {
		timeout = most
	}
	cwd := s.Dir
	if cwd == "" && s.User == sandbox.UserRoot {
		cwd = "/"
	}
	res, err := w.s.engine.Exec(ctx, caller(), string(w.box), engine.ExecRequest{
		Argv: argv, Cwd: cwd, User: s.User, Env: w.variables(s.Env), Timeout: timeout, KillOnDisconnect: true, Lossless: true,
	}, func(f sandbox.Frame) error {
		_, err := w.job.Log.Write(f.Data)
		return err
	})
	if err != nil {
		return err
	}
	return w.outcome(s, res, timeout)
}

// outcome makes an error of a command that failed.
func (w *work) outcome(s entry.Step, res engine.ExecResult, timeout time.Duration) error {
	limits := w.s.limits()
	switch {
	case res.Cause == sandbox.CauseTimeout:
		return fault.New(fault.Timeout, "%s took longer than %v and was ended", s.Title, timeout).WithRemedy("give the step more time, or less to do")
	case res.Cause == sandbox.CauseOOM:
		return fault.New(fault.Exhausted, "%s was killed: it needs more memory than the %d MB that builds have here", s.Title, limits.MemoryMB).WithRemedy("raise limits.max.memory_mb")
	case res.Cause == sandbox.CauseDisk:
		return fault.New(fault.Exhausted, "%s failed: the disk of the build is full; it holds %d MB", s.Title, limits.DiskMB).WithRemedy("raise limits.max.disk_mb, or have the step write less")
	case res.Cause == sandbox.CausePids:
		return fault.New(fault.Exhausted, "%s failed: the build has more than %d processes", s.Title, limits.Pids).WithRemedy("raise limits.max.pids, or have the step start fewer")
	case res.Cause == sandbox.CauseStopped, res.Cause == sandbox.CauseHost:
		return fault.New(fault.Unavailable, "%s was broken off: its sandbox went down (%s)", s.Title, res.CauseDetail)
	case res.ExitCode != 0:
		return fault.New(fault.Unavailable, "%s ended with exit code %d", s.Title, res.ExitCode).
			WithRemedy("look at the last lines with: sandpit image ls -o json; mend the entry or what it fetches from, then build it again")
	}
	return nil
}

// inspect looks at what is inside, and returns the result of the build.
func (w *work) inspect(ctx context.Context) (*image.Built, error) {
	w.job.Report("inspect", "reading the versions that are inside", float64(len(w.job.Steps))/float64(len(w.job.Steps)+1))
	if err := w.ready(ctx, nil); err != nil {
		return nil, err
	}
	made := &image.Built{Resolved: make(map[string]string), Close: w.close}
	inside, err := w.ask(ctx, sandbox.UserSandbox, "bash", "-c", w.job.Inspect)
	if err != nil {
		return nil, err
	}
	made.Inspected = inside
	if made.Packages, err = w.packages(ctx, made.Resolved); err != nil {
		return nil, err
	}
	if err := w.s.engine.KillAll(ctx, caller(), string(w.box)); err != nil {
		return nil, err
	}
	if _, err := w.s.engine.Stop(ctx, caller(), string(w.box)); err != nil {
		return nil, err
	}
	w.up = false
	snap := w.kept
	made.Layer = func(ctx context.Context, to io.Writer) error {
		if snap == "" {
			return emptyLayer(to)
		}
		return w.s.engine.ExportSnapshot(ctx, caller(), "", string(snap), to)
	}
	return made, nil
}

// askBound ends a question about what is inside.
const askBound = 2 * time.Minute

// maxAnswer bounds what is read of one, in bytes.
const maxAnswer = 4 << 20

// ask runs a program that tells what is inside, and returns what it wrote; nothing, where there is no
// such program or it fails.
func (w *work) ask(ctx context.Context, user string, argv ...string) (string, error) {
	res, err := w.s.engine.Exec(ctx, caller(), string(w.box), engine.ExecRequest{
		Argv: argv, User: user, Env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}, Timeout: askBound, KillOnDisconnect: true, MaxStdout: maxAnswer,
	}, nil)
	if err != nil {
		return "", err
	}
	return string(res.Stdout), nil
}
