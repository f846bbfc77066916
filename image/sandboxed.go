// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/image/entry"
)

// Builder does the steps of an entry to its base, in a sandbox. It is safe for concurrent use.
type Builder interface {
	// Build does the job and returns what it made, which the caller closes; nil and an error if a step
	// failed. Nothing of the sandbox is left after an error, or once the result is closed.
	Build(ctx context.Context, j Job) (*Built, error)
}

// Job is what a [Builder] does.
type Job struct {
	Name             string
	Base             Image
	Steps            []entry.Step
	Presets, Domains []string // what the steps may reach
	Packages         []entry.Package
	// Anew says that no step is taken over from an earlier build.
	Anew bool
	// Inspect is a program for bash that tells what is inside, on standard output.
	Inspect string
	// Log gets the steps and their output.
	Log io.Writer
	// Report says how far it is: which step, and from 0 to 1. It never goes back.
	Report func(stage, text string, progress float64)
}

// Built is what became of a [Job].
type Built struct {
	// Layer writes what the steps changed of the base, as an archive in the form of an OCI layer.
	Layer func(ctx context.Context, w io.Writer) error
	// Resolved has what decides the digest beside the base and the recipe: exact versions.
	Resolved map[string]string
	// Packages are versions of the job's packages; Inspected is what Inspect printed.
	Packages  map[string]string
	Inspected string
	Close     func()
}

// Use has b build what is made in sandboxes. It is called once, before the first Ensure.
func (s *Store) Use(b Builder) { s.builder = b }

// sandboxed makes the recipe of an entry.
func sandboxed(e entry.Entry) recipe {
	return recipe{
		Entry:    Entry{Name: e.Name, Title: e.Title, Aliases: e.Aliases, Base: e.Base, Packages: e.Packages, Start: e.Start, ByAdmin: true},
		Contents: e.Recipe(),
		Env:      e.Env,
		made:     &e,
	}
}

// withEntries returns the recipes and those of entries, whose bases have to be among them.
func withEntries(recipes []recipe, entries []entry.Entry) ([]recipe, error) {
	owner := make(map[string]string)
	for _, r := range recipes {
		for _, n := range r.names() {
			owner[n] = r.Name
		}
	}
	for _, e := range entries {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if other := owner[n]; other != "" {
				return nil, fault.New(fault.Invalid, "%s: the name %s belongs to the image %s", e.Source, shown(n), other).
					WithRemedy("choose another name, or leave the alias out")
			}
			owner[n] = e.Name
		}
		recipes = append(recipes, sandboxed(e))
	}
	for i := range recipes {
		at := &recipes[i]
		for range recipes {
			if at.made == nil {
				break
			}
			base := slices.IndexFunc(recipes, func(r recipe) bool { return slices.Contains(r.names(), at.made.Base) })
			if base < 0 {
				return nil, fault.New(fault.Invalid, "%s: there is no image %s to begin with", at.made.Source, shown(at.made.Base)).
					WithRemedy("use one of: %s", strings.Join(slices.Sorted(maps.Keys(owner)), ", "))
			}
			at = &recipes[base]
		}
		if at.made != nil {
			return nil, fault.New(fault.Invalid, "%s: the image %s begins with itself, by way of its base", recipes[i].made.Source, recipes[i].Name).
				WithRemedy("let one of them begin with python")
		}
	}
	return recipes, nil
}

// buildSandboxed makes the image of r by the store's builder.
func (s *Store) buildSandboxed(ctx context.Context, r recipe, b *build) (Image, error) {
	began := time.Now()
	if s.builder == nil {
		return Image{}, fault.New(fault.Unsupported, "the image %q is built in a sandbox, and this program makes none", r.Name).
			WithRemedy("build it by a server: sandpit image build %s", r.Name)
	}
	s.report(b, r.Name, "base", "waiting for the image "+r.made.Base, 0)
	base, err := s.Ensure(ctx, r.made.Base)
	if err != nil {
		return Image{}, fault.Wrap(fault.Of(err), err, "the image %q begins with %q, which cannot be built: %s", r.Name, r.made.Base, fault.As(err).Message)
	}
	if !b.anew {
		if img, err := s.current(r); !fault.Is(err, fault.NotFound) {
			return img, err // another process has built it
		}
	}
	s.log.Info("building an image in a sandbox", "image", r.Name, "base", base.Digest)
	text, err := s.openLog(r.Name, b)
	if err != nil {
		return Image{}, err
	}
	defer text.Close()
	img, err := s.buildOver(ctx, r, b, base, text)
	if err != nil {
		s.log.Error("building an image failed", "image", r.Name, "error", err)
		return Image{}, buildFault(r.Name, err)
	}
	s.log.Info("built an image", "image", r.Name, "digest", img.Digest, "seconds", time.Since(began).Seconds(), "bytes", img.SizeBytes)
	return img, nil
}

func (s *Store) buildOver(ctx context.Context, r recipe, b *build, base Image, text *buildLog) (Image, error) {
	w := &jobLog{file: text, tail: new(tail)}
	made, err := s.builder.Build(ctx, Job{
		Name: r.Name, Base: base, Steps: r.made.Steps, Presets: r.made.Presets, Domains: r.made.Domains, Packages: r.made.Packages, Anew: b.anew,
		Inspect: versionsScript, Log: w,
		Report: func(stage, say string, progress float64) {
			if w.stage != stage {
				w.stage = stage
				w.tail = &tail{each: func(line string) { s.report(b, r.Name, stage, line, 0) }}
			}
			s.report(b, r.Name, stage, say, 0.9*progress)
		},
	})
	if err != nil {
		fe := fault.As(err)
		out := fault.Wrap(fe.Code, &BuildError{Image: r.Name, Stage: w.stage, Output: w.tail.lines(), Err: err}, "building the image %q failed in %s: %s", r.Name, w.stage, fe.Message)
		out.Remedy = fe.Remedy
		return Image{}, out
	}
	defer made.Close()
	s.report(b, r.Name, "keep", "keeping the result", 0.9)
	l, err := waitLock(ctx, s.dir, func() { s.report(b, r.Name, "keep", "another process is building", 0.9) })
	if err != nil {
		return Image{}, err
	}
	defer l.release()
	return adopt(ctx, filepath.Join(s.dir, r.Name), r, base, made, text.Name(), s.log)
}

// jobLog is what a builder writes to: all of it goes to the file, and the last lines of the stage are
// told. It is used by one goroutine at a time.
type jobLog struct {
	file  io.Writer
	tail  *tail
	stage string
}

func (l *jobLog) Write(p []byte) (int, error) {
	_, _ = l.tail.Write(p)
	return l.file.Write(p)
}

// adopt makes an image of a base and what a build changed of it, below dir. The caller has the lock.
// Files of the base are shared with it by hard links: neither is ever written.
func adopt(ctx context.Context, dir string, r recipe, base Image, made *Built, logFile string, log *slog.Logger) (img Image, err error) {
	w := filepath.Join(dir, workName)
	if err := discard(w); err != nil {
		return Image{}, err
	}
	root := filepath.Join(w, rootName)
	if err := os.MkdirAll(w, 0o755); err != nil {
		return Image{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(w))
		}
	}()
	if err := linkTree(ctx, base.Root, root); err != nil {
		return Image{}, err
	}
	if err := applyFrom(ctx, base.Root, root, left(), made.Layer); err != nil {
		return Image{}, err
	}
	size, files, err := measure(root)
	if err != nil {
		return Image{}, err
	}
	resolved := maps.Clone(made.Resolved)
	if resolved == nil {
		resolved = make(map[string]string)
	}
	resolved["base"] = base.Digest
	versions, absent := inspected(base, made)
	for name, v := range versions {
		resolved["inside "+name] = v // also of what no package tool has a list of
	}
	env := maps.Clone(base.Env)
	if env == nil {
		env = make(map[string]string)
	}
	maps.Copy(env, r.Env)
	hash := r.hash()
	m := manifest{
		Schema: manifestSchema, Name: r.Name, Digest: digest(hash, resolved), Recipe: hash, Created: time.Now().UTC(),
		SizeBytes: size, Files: files, Versions: versions, Absent: absent, Env: env,
	}
	if text, err := os.ReadFile(logFile); err != nil {
		log.Warn("the log of a build is not kept with its image", "image", r.Name, "error", err)
	} else if err := os.WriteFile(filepath.Join(w, buildLogName), text, 0o600); err != nil {
		return Image{}, err
	}
	return place(w, m)
}

// inspected returns the versions of what is inside, and what is missed there, of what the base tells of,
// what versions.sh knows, and the packages that the build added. Other lines are the image's own.
func inspected(base Image, made *Built) (map[string]string, []string) {
	found, _ := parseVersions(made.Inspected, nil)
	versions := make(map[string]string)
	for name, v := range found {
		if base.Versions[name] != "" || slices.Contains(pythonTools, name) {
			versions[name] = v
		}
	}
	maps.Copy(versions, made.Packages)
	if len(versions) == 0 {
		versions = nil
	}
	return versions, parseAbsent(made.Inspected)
}
